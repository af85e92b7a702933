/* The model disk stands in place of the machine's: a command on it asks the machine's own disk nothing that decides what it does. */
import fsPromises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import t, { type Test } from 'tap'
import { DurableCalls } from '../../../src/durable/index.js'
import { failure } from '../../durable/intercepted.js'
import { ModelDisk } from './model-disk.js'
import { ModelProcess } from './model-process.js'
import { stories } from './static-pods/stories.js'

const asking = ['access', 'lstat', 'stat', 'readFile', 'readdir', 'writeFile', 'rename', 'rm'] as const

/** Until the test ends, the machine's own disk answers with EROFS at `/` and below `/node`, as a read-only one does. */
function refuseOwnDisk(t: Test): void {
  const own = fsPromises as unknown as Record<string, (path: unknown, ...rest: unknown[]) => unknown>
  const real = { ...own }
  for (const name of asking) {
    own[name] = (path, ...rest) =>
      /^\/(node(\/.*)?)?$/.test(String(path)) ? Promise.reject(failure('EROFS', name)) : real[name]?.(path, ...rest)
  }
  syncBuiltinESMExports()
  t.teardown(() => {
    Object.assign(own, real)
    syncBuiltinESMExports()
  })
}

for (const { name, prepare, command, judge } of stories) {
  await t.test(`${name}: the model answers alone where the machine's own disk is read-only`, async (t) => {
    refuseOwnDisk(t)
    const disk = new ModelDisk()
    await prepare(disk)
    const { done } = await judge(disk.fork())
    await command(new DurableCalls(new ModelProcess(disk)))
    const faults: string[] = []
    await done({ disk, ledgers: [], trail: [name] }, (fault) => faults.push(fault))
    t.same(faults, [])
  })
}
