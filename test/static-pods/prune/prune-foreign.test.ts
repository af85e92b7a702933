import { mkdirSync, readdirSync, readlinkSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import { publish } from '../../../src/durable/publish/publish.js'
import { DurableCalls } from '../../../src/durable/index.js'
import { silent } from '../../../src/log.js'
import { revisionFamily } from '../../../src/static-pods/names.js'
import { prune } from '../../../src/static-pods/prune/prune.js'
import { intercepted, Killed } from '../../durable/intercepted.js'
import { contents } from '../../durable/scratch.js'
import { run } from '../command.js'
import { NodeDisk, podText } from '../pods.js'
import { requestOf } from './prune-request.js'
import { isKind } from '../../crash/judge/names.js'

await t.test(
  "prune keeps another program's files that an exchange took out of a revision, and removes the staging around them",
  async (t) => {
    const node = new NodeDisk(t)
    node.makeRevision(1)
    const target = node.revision(1)
    let exchanged = false
    const { fs } = intercepted((call) => {
      if (exchanged) throw new Killed()
      if (call !== 'rename') return
      exchanged = true
      renameSync(target, join(node.resources, 'away'))
      mkdirSync(target)
      writeFileSync(join(target, 'theirs'), 'precious')
    })
    const request = { target, files: { a: '1' }, family: revisionFamily('web-pod') }
    await publish([directoryPublication(fs, request)]).catch(() => undefined)
    t.ok(exchanged)
    const args = ['prune', '--keep=9', '--static-pod-name=web-pod']
    const { code, stderr } = await run([...args, `--resource-dir=${node.resources}`])
    t.equal(code, 0, stderr)
    const [quarantined = '', ...more] = readdirSync(node.resources).filter(isKind('staging', 'foreign'))
    t.match(quarantined, /-[0-9a-f]{16}\.foreign$/)
    t.same(more, [])
    t.same(contents(join(node.resources, quarantined)), { theirs: 'precious' })
  },
)

await t.test(
  "prune syncs other programs' manifests before it removes a revision that they do not name, and only then",
  async (t) => {
    const node = new NodeDisk(t)
    node.makeRevision(1)
    node.makeManifest(podText({ labels: { revision: '2' } }))
    /** The paths synced before the first rename. */
    const syncedFor = async (keep: number): Promise<string[]> => {
      const synced: string[] = []
      let goes = false
      const { fs } = intercepted((call, args) => {
        goes ||= call === 'rename'
        if (call !== 'sync' || goes) return
        for (const descriptor of args[0] as number[]) synced.push(readlinkSync(`/proc/self/fd/${descriptor}`))
      })
      await prune(requestOf(node, { keep }), new DurableCalls(fs), silent, new AbortController().signal)
      return synced.filter((path) => path.startsWith(node.manifests))
    }
    t.same(await syncedFor(1), [], 'nothing goes')
    t.same((await syncedFor(0)).sort(), [node.manifests, node.manifest()])
  },
)
