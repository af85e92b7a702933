/** Old paths of directories that move, where the configuration changes during a pass. */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { noEvents } from '../../../src/agent/report/agent-events.js'
import { applyOutcome, reconcile } from '../../../src/agent/reconcile.js'
import { DirectoryStates } from '../../../src/agent/directory-state.js'
import { withOldPaths } from '../../../src/agent/leaving/moves.js'
import { noMetrics } from '../../../src/agent/report/report-metrics.js'
import { readPublication, replaceDirectory } from '../../../src/durable/index.js'
import { silent } from '../../../src/log.js'
import type { ObjectReference } from '../../../src/objects/types.js'
import { directoryOf, present, secret, whole } from '../../directories/objects.js'
import { scratch } from '../../durable/scratch.js'

/** A directory that is published at its old path, and a pass that takes it to its new one. */
async function moving(t: Test) {
  const root = scratch(t)
  const [from, to] = [join(root, 'was'), join(root, 'is')]
  await replaceDirectory(from, { files: { key: 'old' }, publisher: 'agent' })
  const states = new DirectoryStates()
  const plain = directoryOf([whole(secret('web'))], { path: from })
  const moved = { ...plain, path: to, movedFrom: { path: from, keep: 0 } }
  const [, old] = withOldPaths([moved]).map((one) => states.add(one))
  if (old === undefined) throw new Error('no old path')
  const latest = ({ name }: ObjectReference) => present(secret(name), { key: 'new' })[1]
  const pass = async (meanwhile: { published?: () => void; asked?: (looks: number) => void }) => {
    let looks = 0
    const outcomes: string[] = []
    const batch = [...states].map(
      ({ publishOperation }) => [publishOperation, { causes: ['start'], since: 0 }] as const,
    )
    const results = await reconcile(new Map(batch), {
      log: silent,
      metrics: noMetrics,
      events: noEvents,
      lockTimeout: 0,
      requireProven: () => false,
      signal: new AbortController().signal,
      source: {
        latest,
        load(reference) {
          meanwhile.published?.()
          return Promise.resolve(latest(reference))
        },
        published() {},
      },
      state(operation) {
        if (operation === old.publishOperation) meanwhile.asked?.(++looks)
        return states.byOperation(operation)
      },
      applied: ({ path }, outcome) => outcomes.push(`${path.slice(root.length + 1)} ${outcome.kind}`),
    })
    return { outcomes, results: [...results.values()] }
  }
  const key = (path: string): string => (existsSync(path) ? readFileSync(join(path, 'key'), 'utf8') : 'none')
  return { from, to, states, old, plain, pass, key }
}

type Scene = Awaited<ReturnType<typeof moving>>

/** What a new configuration does with the old path. */
const changes: Record<string, (scene: Scene) => void> = {
  'is dropped': ({ states, from }) => states.remove(from),
  'is a directory of its own again': ({ old, plain }) => {
    old.happened({ kind: 'configured', configuration: plain })
  },
}

for (const [what, change] of Object.entries(changes)) {
  await t.test(`an old path that ${what} while the new one is published stays as it is`, async (t) => {
    const scene = await moving(t)
    const { from, to, pass, key } = scene
    t.strictSame(await pass({ published: () => change(scene) }), { outcomes: ['is published'], results: ['done'] })
    t.strictSame([key(from), key(to)], ['old', 'new'])
    t.equal((await readPublication(from))?.movedTo, undefined)
  })

  await t.test(`the agent does not touch an old path that ${what} while it moves`, async (t) => {
    const scene = await moving(t)
    const { from, to, pass, key } = scene
    const { outcomes } = await pass({
      // The second look comes right before its move begins.
      asked(looks) {
        if (looks === 2) setImmediate(change, scene)
      },
    })
    t.strictSame(outcomes, ['is published'])
    t.strictSame([key(from), key(to)], ['old', 'new'])
  })
}

await t.test('otherwise it follows in the same pass', async (t) => {
  const { from, pass, key } = await moving(t)
  t.strictSame((await pass({})).outcomes, ['is published', 'was moving'])
  t.equal(key(from), 'new')
})

await t.test('an old path that has followed, and cannot be compared, has followed', async (t) => {
  const { from, to, old } = await moving(t)
  const digest = 'sha256:of-the-new-content'
  const result = { outcome: 'replaced', path: from, digest, sequence: 7 } as const
  const outcome = { kind: 'moving', to, state: 'both', result, waits: 'it is in use' } as const
  renameSync(dirname(from), `${dirname(from)}-away`)
  t.teardown(() => rmSync(`${dirname(from)}-away`, { recursive: true }))
  writeFileSync(dirname(from), '')
  const errors: string[] = []
  await applyOutcome(old, outcome, { ...silent, error: (_: object, message: string) => void errors.push(message) })
  t.matchOnly(errors, [/^could not compare .*is not a directory/])
  t.equal(errors.length, 1)
  t.match(old.facts, { record: { digest, sequence: 7 } })
})
