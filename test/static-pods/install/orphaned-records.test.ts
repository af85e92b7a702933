/** Records in the resource directory: which ones speak of a revision that is not there, whether they are whole or torn. */
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { DurableCalls, namesFor } from '../../../src/durable/index.js'
import { orphanedRecords } from '../../../src/static-pods/prune/leftovers.js'
import { revisionName } from '../../../src/static-pods/names.js'
import { scratch } from '../pods.js'

const recordOf = (name: string): string => namesFor(name).record(1)
const nameOf = (revision: number): string => revisionName('web-pod', revision)

/** A directory with one record and its neighbours, and the newest revision that any installer could have begun. */
interface Place {
  readonly t: Test
  readonly directory: string
}

/** The record that a publication of this name writes. */
async function published({ t }: Place, name: string): Promise<Buffer> {
  const elsewhere = scratch(t)
  await new DurableCalls().publishDirectories([{ target: join(elsewhere, name), files: { a: 'a' } }], undefined)
  return readFileSync(join(elsewhere, recordOf(name)))
}

async function found({ directory }: Place, newest: number): Promise<readonly string[] | undefined> {
  const durable = new DurableCalls()
  return durable.inDirectory(directory, async (parent) => orphanedRecords(durable, parent, 'web-pod', newest))
}

await t.test('orphanedRecords finds records whose revision is missing, whole or torn', async (t) => {
  const place = { t, directory: scratch(t) }
  const torn = 'torn'
  const rows: [what: string, of: string, text: Buffer | string, newest: number, isOrphan: boolean, also?: string][] = [
    ['whole', nameOf(3), await published(place, nameOf(3)), 9, true],
    ['whole, far from the newest', nameOf(3), await published(place, nameOf(3)), 5000, true],
    ['whole, of a revision that is there', nameOf(3), await published(place, nameOf(3)), 9, false, nameOf(3)],
    ['whole, beside another revision', nameOf(3), await published(place, nameOf(3)), 9, true, nameOf(4)],
    ["another pod's", 'other-pod-3', await published(place, 'other-pod-3'), 9, false],
    ['what only looks like a revision', 'web-pod-03', await published(place, 'web-pod-03'), 9, false],
    ["another name's, copied", nameOf(4), await published(place, nameOf(3)), 9, false],
    ['torn', nameOf(3), torn, 9, true],
    ['torn, of a revision that is there', nameOf(3), torn, 9, false, nameOf(3)],
    ['torn, of the newest', nameOf(9), torn, 9, true],
    ['torn, of one that is newer still', nameOf(10), torn, 9, false],
    ['torn, of the first', nameOf(0), torn, 9, true],
    ['torn, as old as is looked for', nameOf(5), torn, 1005, true],
    ['torn, older', nameOf(4), torn, 1005, false],
    ['empty', nameOf(3), '', 9, true],
    ['no object', nameOf(3), `${'0'.repeat(64)} 5\n`, 9, true],
    ['a name that is no text', nameOf(3), `${'0'.repeat(64)} {"name":5}\n`, 9, true],
  ]
  for (const [what, of, text, newest, isOrphan, also] of rows) {
    const path = join(place.directory, recordOf(of))
    writeFileSync(path, text)
    if (also !== undefined) mkdirSync(join(place.directory, also))
    t.same(await found(place, newest), isOrphan ? [recordOf(of)] : [], what)
    rmSync(path)
    if (also !== undefined) rmSync(join(place.directory, also), { recursive: true })
  }
})

await t.test('orphanedRecords judges each of several records by itself, and opens nothing else', async (t) => {
  const place = { t, directory: scratch(t) }
  for (const revision of [1, 2, 3]) writeFileSync(join(place.directory, recordOf(nameOf(revision))), 'torn')
  mkdirSync(join(place.directory, nameOf(2)))
  mkdirSync(join(place.directory, `${recordOf(nameOf(4))}x`))
  mkdirSync(join(place.directory, `x${recordOf(nameOf(4))}`))
  t.same([...((await found(place, 9)) ?? [])].sort(), [1, 3].map((revision) => recordOf(nameOf(revision))).sort())
})

await t.test('orphanedRecords leaves alone what is no record, and refuses one to which others may write', async (t) => {
  const place = { t, directory: scratch(t) }
  const record = join(place.directory, recordOf(nameOf(4)))
  mkdirSync(join(place.directory, recordOf(nameOf(3))))
  t.same(await found(place, 9), [])
  writeFileSync(record, 'torn')
  chmodSync(record, 0o666)
  await t.rejects(found(place, 9), { code: 'EPERM', reason: 'TargetUnfit', path: record })
})
