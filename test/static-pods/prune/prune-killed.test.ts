/** prune, failing at each call, and beside an installation. A power cut and a kill at each: test/crash/model/static-pods. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DurableWriteError } from '../../../src/durable/errors.js'
import { silent } from '../../../src/log.js'
import { DurableCalls } from '../../../src/durable/index.js'
import { operationLockName, revisionFamily } from '../../../src/static-pods/names.js'
import { prune } from '../../../src/static-pods/prune/prune.js'
import { failure, intercepted } from '../../durable/intercepted.js'
import { runProcess } from '../command.js'
import { contents, NodeDisk, podText } from '../pods.js'
import { requestOf } from './prune-request.js'

const { signal } = new AbortController()

await t.test('prune waits for a running installation', async (t) => {
  const node = new NodeDisk(t)
  node.makeRevision(1)
  const durable = new DurableCalls()
  const held = await durable.lock(join(node.resources, operationLockName('web-pod')), 0, undefined)
  const busy = await runProcess([
    'prune',
    '--keep=0',
    `--resource-dir=${node.resources}`,
    '--static-pod-name=web-pod',
    '--lock-timeout=50ms',
  ])
  t.equal(busy.code, 75, busy.stderr)
  t.ok(existsSync(node.revision(1)))
  await held.release()
  await prune(requestOf(node), durable, silent, signal)
  t.notOk(existsSync(node.revision(1)))
})

await t.test(
  'a prune that fails at each call leaves a revision whole or gone, and the next run completes',
  async (t) => {
    const whole = (node: NodeDisk): boolean => {
      if (!existsSync(node.revision(1))) return true
      const { 'secrets/tls/tls.key': key, 'web-pod.yaml': manifest } = contents(node.revision(1))
      return key === 'key 1' && manifest !== undefined
    }
    const make = async (): Promise<NodeDisk> => {
      const node = new NodeDisk(t)
      for (const revision of [1, 2]) {
        const files = { 'secrets/tls/tls.key': `key ${revision}`, 'web-pod.yaml': podText() }
        // As install publishes it: with a record beside it.
        const request = { target: node.revision(revision), files, family: revisionFamily('web-pod') }
        await new DurableCalls().publishDirectories([request], undefined)
      }
      return node
    }
    let calls = 0
    const counted = intercepted(() => calls++)
    await prune(requestOf(await make()), new DurableCalls(counted.fs), silent, signal)
    t.ok(calls > 15, `${calls} calls`)
    t.equal(counted.open.size, 0)
    const wrong: string[] = []
    for (let n = 1; n <= calls; n++) {
      const node = await make()
      let when = ''
      const { fs } = intercepted((call, _args, index) => {
        if (index !== n) return
        when = `EIO at call ${n}, ${call}`
        throw failure('EIO', call)
      })
      const request = requestOf(node)
      const lines = await prune(request, new DurableCalls(fs), silent, signal).catch((error: unknown) => error)
      if (!whole(node)) wrong.push(`${when}: revision 1 is torn`)
      if (!Array.isArray(lines) && !(lines instanceof DurableWriteError)) wrong.push(`${when}: ${String(lines)}`)
      await prune(request, new DurableCalls(), silent, signal)
      const left = readdirSync(node.resources).filter((entry) => !entry.endsWith('.lock'))
      if (left.length > 0) wrong.push(`${when}: the next run leaves ${left.join()}`)
    }
    t.same(wrong, [])
  },
)
