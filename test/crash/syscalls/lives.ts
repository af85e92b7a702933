/** Swept, too: what comes after a first publication, up to the end of a target. */
import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isKind, namesOf } from '../judge/names.js'
import { library } from './distribution.js'
import { clean, configure, placeOf, put, runSync, type Scenario, synced, syncArgs } from './scene.js'

const history = (keep: number) => ({ history: { keep, maxAge: null } })

async function publish(target: string, version: string, keep?: number): Promise<void> {
  const request = { target, files: synced(version), ...(keep !== undefined && history(keep)) }
  const [outcome] = await (await library()).replaceDirectories([request])
  if (outcome === undefined || 'error' in outcome) throw new Error(JSON.stringify(outcome))
}

/** Earlier contents: whole, each in a record, and one of these numbers of them. */
async function pastOf(target: string, ...counts: readonly number[]): Promise<string[]> {
  const past = ((await (await library()).history.read(target)) ?? []).filter(({ state }) => state !== 'present')
  const damaged = past.filter(({ state }) => state !== 'whole').map(({ problem }) => problem ?? '')
  const names = namesOf(target, readdirSync(dirname(target))).filter(({ kind }) => kind === 'generation')
  const wrong =
    counts.includes(past.length) && names.length === past.length
      ? []
      : [`${past.length} earlier contents in ${names.length}`]
  return [...damaged, ...wrong]
}

/** A target with history whose generation goes, an adoption, and a move. */
const batch: Scenario = {
  name: 'sync: history, adoption, relocation',
  targets: ['kept', 'adopted', 'new/moved', 'was/moved'],
  async prepare(root) {
    const place = clean(root)
    await publish(join(place, 'kept'), 'older', 1)
    await publish(join(place, 'kept'), 'old', 1)
    await publish(join(place, 'was/moved'), 'old')
    put(join(place, 'adopted'), { certificate: 'theirs', key: 'theirs', 'sub/more': 'theirs' })
    configure(root, 'new', [
      { path: join(place, 'kept'), history: 1 },
      { path: join(place, 'adopted'), adopt: true },
      { path: join(place, 'new/moved'), movedFrom: join(place, 'was/moved') },
    ])
  },
  args: syncArgs,
  again: runSync,
  async beside(root) {
    const [kept, adopted] = ['kept', 'adopted'].map((name) => pastOf(join(placeOf(root), name), 1))
    return [...((await kept) ?? []), ...((await adopted) ?? [])]
  },
  // The first exchange is the one with which an adoption tries whether there can be any.
  before: [],
  after: [
    'mkdir EARLIER',
    'sync_file_range EARLIER/kept/key',
    'io_submit ',
    'io_getevents ',
    'write RECORD',
    'write was/RECORD',
    'write new/RECORD',
  ],
}

const certs = (root: string): string => join(placeOf(root), 'certs')

const rollback: Scenario = {
  name: 'rollback',
  targets: ['certs'],
  async prepare(root) {
    clean(root)
    await publish(certs(root), 'new', 1)
    await publish(certs(root), 'old', 1)
  },
  args: (root) => ['rollback', certs(root), '--pin', 'released', '-o', 'json'],
  async again(root) {
    const { readPublication, replaceDirectory, history } = await library()
    const target = certs(root)
    const found = await readPublication(target)
    const isThere = found?.pin !== undefined && found.differences.length === 0 && found.settled
    // Without a source for a rollback: the leftovers go with the next publication.
    if (isThere) return [(await replaceDirectory(target, { files: synced('new') })).outcome]
    return [(await history.rollBack(target, { pin: { reason: '', until: 'released' } })).outcome]
  },
  beside: (root) => pastOf(certs(root), 1, 2),
  before: ['flock LOCK', 'io_submit ', 'io_getevents '],
  after: ['io_submit ', 'io_getevents ', 'write RECORD'],
}

const removal: Scenario = {
  name: 'remove',
  targets: ['certs'],
  hasPhases: false,
  async prepare(root) {
    clean(root)
    await publish(certs(root), 'older', 1)
    await publish(certs(root), 'old', 1)
  },
  // Of a test's machine, not all processes may be looked at.
  args: (root) => ['remove', certs(root), '--force', '--state-directory', root, '-o', 'json'],
  async again(root) {
    const { removePublished } = await library()
    try {
      await removePublished(certs(root), { force: true })
      return ['removed']
    } catch (error) {
      if ((error as { code?: string }).code !== 'ENOENT') throw error
      return ['unchanged']
    }
  },
  beside(root) {
    const left = readdirSync(placeOf(root)).filter((name) => !isKind('lock')(name))
    return Promise.resolve(left.map((name) => `${name} is left`))
  },
  before: ['flock LOCK', 'write RECORD', 'io_submit ', 'io_getevents '],
  after: ['io_submit ', 'io_getevents ', 'unlink key', 'rmdir STAGING', 'unlink RECORD'],
}

/** Only the record changes: an acknowledged hold is there; another one may be. */
const hold: Scenario = {
  name: 'hold',
  targets: ['certs'],
  hasPhases: false,
  async prepare(root) {
    clean(root)
    await publish(certs(root), 'old')
  },
  look: async (root) => `held: ${(await (await library()).readPublication(certs(root)))?.hold !== undefined}`,
  args: (root) => ['hold', certs(root), '--reason', 'maintenance', '-o', 'json'],
  async again(root) {
    const { replaceDirectory, setHold } = await library()
    const again = () => setHold(certs(root), { reason: 'maintenance', since: Date.now(), until: null })
    await again()
    // An older record that was left goes with the next publication.
    await replaceDirectory(certs(root), { files: synced('old'), held: 'release' })
    await again()
    return ['held']
  },
  before: [],
  after: ['flock LOCK', 'write RECORD', 'io_submit ', 'io_getevents ', 'unlink RECORD'],
}

export const lives: readonly Scenario[] = [batch, rollback, removal, hold]
