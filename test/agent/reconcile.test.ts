/** One pass over several directories of a batch, on a real disk. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { DirectoryState } from '../../src/agent/directory-state.js'
import { reconcile } from '../../src/agent/reconcile.js'
import { noEvents } from '../../src/agent/report-events.js'
import { noMetrics } from '../../src/agent/report-metrics.js'
import { silent } from '../../src/log.js'
import type { ObjectReference } from '../../src/objects/types.js'
import { directoryOf, present, secret, whole } from '../directories/objects.js'

function directory(t: Test): string {
  const root = mkdtempSync(join(tmpdir(), 'holdfast-reconcile-'))
  t.teardown(() => rmSync(root, { recursive: true, force: true }))
  return root
}

await t.test('a fault of one directory does not keep the others of the batch from being reported', async (t) => {
  const root = directory(t)
  const states = ['one', 'two'].map(
    (name) => new DirectoryState(directoryOf([whole(secret(name))], { path: join(root, name) })),
  )
  const [one, two] = states
  const latest = ({ name }: ObjectReference) => present(secret(name), { key: name })[1]
  const reported: string[] = []
  const batch = new Map(['one', 'two'].map((name) => [name, { causes: [name], since: 0 }]))
  const results = await reconcile(batch, {
    log: silent,
    metrics: noMetrics,
    events: noEvents,
    signal: new AbortController().signal,
    lockTimeout: 0,
    requireProven: () => false,
    source: { latest, published() {} },
    state: (operation) => (operation === 'one' ? one : two),
    applied: ({ path }) => {
      if (path.endsWith('one')) throw new Error('EIO')
      reported.push(path)
    },
  })
  t.strictSame(
    [...results],
    [
      ['one', 'retry'],
      ['two', 'done'],
    ],
  )
  t.strictSame(reported, [join(root, 'two')])
  t.equal(two?.intact, true)
})
