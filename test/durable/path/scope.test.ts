/** Descriptors that one operation holds: each is closed once. */
import { openSync } from 'node:fs'
import t from 'tap'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { Scope } from '../../../src/durable/path/scope.js'

await t.test('closeAll of a scope that another caller is closing closes nothing twice', async (t) => {
  const closed: number[] = []
  class Counting extends NodeFileSystem {
    override close(descriptor: number): Promise<void> {
      closed.push(descriptor)
      return closed.indexOf(descriptor) < closed.length - 1 ? Promise.resolve() : super.close(descriptor)
    }
  }
  const scope = new Scope(new Counting())
  const descriptors = [openSync('/', 'r'), openSync('/', 'r')]
  for (const descriptor of descriptors) await scope.keep(Promise.resolve(descriptor))
  await Promise.all([scope.closeAll(), scope.closeAll()])
  t.same(closed, descriptors)
  t.notOk(descriptors.some((descriptor) => scope.holds(descriptor)))
})
