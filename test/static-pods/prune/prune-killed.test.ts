/** prune, killed or failing before each call, and beside an installation. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DurableWriteError } from '../../../src/durable/errors.js'
import { silent } from '../../../src/log.js'
import { Disk } from '../../../src/durable/index.js'
import { operationLockName, revisionFamily, revisionName } from '../../../src/static-pods/names.js'
import { prune } from '../../../src/static-pods/prune/prune.js'
import { failure, intercepted, Killed } from '../../durable/intercepted.js'
import { runProcess } from '../command.js'
import { contents, NodeDisk, podText } from '../pods.js'
import { requestOf } from './prune-request.js'

const { signal } = new AbortController()

await t.test('prune waits for a running installation', async (t) => {
  const node = new NodeDisk(t)
  node.makeRevision(1)
  const disk = new Disk()
  const held = await disk.lock(join(node.resources, operationLockName('web-pod')), 0, undefined)
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
  await prune(requestOf(node), disk, silent, signal)
  t.notOk(existsSync(node.revision(1)))
})

await t.test(
  'a prune killed before each call, or failing at each, leaves a revision whole or gone, and the next run completes',
  async (t) => {
    const wanted = { 'secrets/tls/tls.key': 'key 1' }
    const whole = (node: NodeDisk): boolean => {
      if (!existsSync(node.revision(1))) return true
      const { 'secrets/tls/tls.key': key, 'web-pod.yaml': manifest } = contents(node.revision(1))
      return key === wanted['secrets/tls/tls.key'] && manifest !== undefined
    }
    const make = async (t: Tap): Promise<NodeDisk> => {
      const node = new NodeDisk(t)
      for (const revision of [1, 2]) {
        // As install publishes it: with a record beside it.
        await new Disk().publishDirectories(
          [
            {
              target: node.revision(revision),
              files: { 'secrets/tls/tls.key': `key ${revision}`, 'web-pod.yaml': podText() },
              family: revisionFamily('web-pod'),
            },
          ],
          undefined,
        )
      }
      return node
    }
    type Tap = typeof t
    let calls = 0
    const counted = intercepted(() => calls++)
    await prune(requestOf(await make(t)), new Disk(counted.fs), silent, signal)
    t.ok(calls > 15, `${calls} calls`)
    t.equal(counted.open.size, 0)
    const wrong: string[] = []
    for (const fault of ['killed', 'EIO'] as const) {
      for (let n = 1; n <= calls; n++) {
        const node = await make(t)
        let name = ''
        const { fs } = intercepted((call, _args, index) => {
          if (index === n) name = call
          if (fault === 'killed' ? index >= n : index === n)
            throw fault === 'killed' ? new Killed() : failure(fault, call)
        })
        const when = `${fault} at call ${n}, ${name}`
        const request = requestOf(node)
        const lines = await prune(request, new Disk(fs), silent, signal).catch((error: unknown) => error)
        if (!whole(node)) wrong.push(`${when}: revision 1 is torn`)
        // The prune could not read the revisions in use, or another call failed.
        const said =
          lines instanceof DurableWriteError || /cannot be read: EIO(; nothing was removed)?$/.test(String(lines))
        if (fault === 'EIO' && !Array.isArray(lines) && !said) wrong.push(`${when}: ${String(lines)}`)
        await prune(request, new Disk(), silent, signal)
        const left = readdirSync(node.resources).filter((entry) => !entry.endsWith('.lock'))
        if (left.length > 0) wrong.push(`${when}: the next run leaves ${left.join()}`)
      }
    }
    t.same(wrong, [])
  },
)

await t.test('install removes the leftovers of a killed prune and a killed install', async (t) => {
  const node = new NodeDisk(t)
  node.makeRevision(1)
  const { fs } = intercepted((call) => {
    if (call === 'removeFile') throw new Killed()
  })
  await prune(requestOf(node), new Disk(fs), silent, signal).catch(() => undefined)
  const staging = () => readdirSync(node.resources).filter((name) => /^\.holdfast-[0-9a-f]{16}-/.test(name))
  t.equal(staging().length, 1)
  t.equal(readFileSync(join(node.resources, staging()[0] ?? '', 'secrets/tls/tls.key'), 'utf8'), 'key 1')
  await new Disk().publishDirectories(
    [
      {
        target: join(node.resources, revisionName('web-pod', 2)),
        files: { a: 'b' },
        family: revisionFamily('web-pod'),
      },
    ],
    undefined,
  )
  t.same(staging(), [])
})
