import type { FileSystem } from '../../../src/durable/file-system.js'
import { setHold } from '../../../src/durable/operator/hold.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { recordObjects } from '../../../src/durable/record/record-files.js'
import { encodeLine, wholeLines } from '../../../src/checked-lines.js'
import { access, byDefault, encoded, listOf } from '../../crash/model/access-lists.js'
import type { ModelDisk } from '../../crash/model/model-disk.js'
import { makeDirectory, makeEntry } from '../../crash/model/scenario.js'
import { failure } from '../intercepted.js'
import {
  directory,
  first,
  killedIn,
  link,
  numberOf,
  object,
  published,
  refused,
  watched,
  root,
  second,
  target,
  type Scene,
} from './scene.js'

const parent = '/etc/pki'
const names = namesFor('certs')
const random = '0123456789abcdef'

/** The first publication, whose record has these fields, too. */
const recordWith =
  (fields: object) =>
  async (disk: ModelDisk, fs: FileSystem): Promise<void> => {
    await directory({ files: first })(fs)
    const path = `${parent}/${names.record(1)}`
    const [body] = wholeLines(disk.inode(numberOf(disk, path)).now.data)
    const text = Buffer.from(encodeLine({ ...body, ...fields })).toString('latin1')
    disk.link(numberOf(disk, parent), [[names.record(1), undefined]], 'unlink')
    makeEntry(disk, path, 'file', 0o600, text)
  }

/** Names of this program's form beside the target, drift, and reads during a publication. */
export const beside: readonly Scene[] = [
  {
    name: 'beside names that somebody else has taken',
    ends: 'replaced',
    before: async (disk, fs) => {
      await directory({ files: first })(fs)
      disk.setMetadata(numberOf(disk, parent), { mode: 0o1777 }, 'chmod')
      link(disk, `${parent}/${names.record(2)}`, 'elsewhere')
      disk.create(numberOf(disk, parent), names.record(4), 'file', { ...root, mode: 0o600, uid: 7 }, 'not a record')
      makeDirectory(disk, `${parent}/${names.record(5)}`, 0o700)
      makeEntry(disk, `${parent}/${names.quarantine(random)}`, 'file', 0o600, 'foreign')
      makeEntry(disk, `${parent}/.holdfast-other`, 'file', 0o600, 'foreign')
      makeEntry(disk, `${parent}/${names.staging(random)}x`, 'file', 0o600, 'foreign')
    },
    run: directory({ files: second }),
  },
  {
    name: 'beside a record to which others may write',
    ends: 'TargetUnfit, TargetUnfit',
    before: async (disk, fs) => {
      await directory({ files: first })(fs)
      disk.setMetadata(numberOf(disk, `${parent}/${names.record(1)}`), { mode: 0o606 }, 'chmod')
    },
    run: async (fs, log) => [
      await setHold(fs, target, { reason: '', since: 1, until: null }, {}).catch(refused),
      await directory({ files: second })(fs, log),
    ],
  },
  {
    name: 'beside a record to which root’s group may write',
    ends: 'replaced',
    before: async (disk, fs) => {
      await directory({ files: first })(fs)
      disk.setMetadata(numberOf(disk, `${parent}/${names.record(1)}`), { mode: 0o660 }, 'chmod')
    },
    run: directory({ files: second }),
  },
  {
    name: 'beside damaged records',
    ends: 'replaced',
    before: async (disk, fs) => {
      await recordWith({ kind: 'other' })(disk, fs)
      makeEntry(disk, `${parent}/${names.record(4)}`, 'file', 0o600, '')
    },
    run: directory({ files: second }),
  },
  {
    name: 'beside a damaged record and a whole one',
    ends: 'replaced',
    before: async (disk, fs) => {
      await directory({ files: first })(fs)
      makeEntry(disk, `${parent}/${names.record(4)}`, 'file', 0o600, '')
    },
    run: directory({ files: second }),
  },
  {
    name: 'beside old content and what was staged, of unknown origin',
    ends: 'unchanged',
    before: async (disk, fs) => {
      await directory({ files: first })(fs)
      makeDirectory(disk, `${parent}/${names.staging(random)}`, 0o700)
      makeEntry(disk, `${parent}/${names.staging(random)}/mine`, 'file', 0o600, 'foreign')
    },
    run: directory({ files: first }),
  },
  {
    name: 'what a newer version has published',
    ends: 'TargetUnfit, TargetUnfit',
    before: recordWith({ requires: ['hold', 'later'], later: 1 }),
    run: async (fs, log) => [
      await setHold(fs, target, { reason: '', since: 1, until: null }, {}).catch(refused),
      await directory({ files: second })(fs, log),
    ],
  },
  {
    name: 'what is kept of a newer version’s record',
    ends: 'replaced',
    before: recordWith({ later: { a: 1 } }),
    run: async (fs, log) => [
      await setHold(fs, target, { reason: '', since: 1, until: null }, { log }),
      await setHold(fs, target, { reason: 'again', since: 2, until: 3 }, { log }),
      await directory({ files: second, held: 'release' })(fs, log),
    ],
  },
  {
    name: 'hold of what has drifted',
    before: async (disk, fs) => {
      await directory({ files: first })(fs)
      disk.append(numberOf(disk, `${target}/gone`), 'more')
    },
    run: (fs, log) => setHold(fs, target, { reason: '', since: 1, until: null }, { log }),
  },
  {
    name: 'hold after a kill',
    ends: 'Held, replaced',
    before: async (disk, fs) => {
      const left = await killedIn({ files: second }, /^exchange/)(disk, fs)
      return left
    },
    run: async (fs, log) => [
      await setHold(fs, target, { reason: '', since: 1, until: null }, { log }),
      await directory({ files: second })(fs, log),
      await directory({ files: second, held: 'release' })(fs, log),
    ],
  },
  {
    name: 'another user’s directories that nobody may write to',
    ends: 'replaced',
    before: async (disk, fs) => {
      await directory({ files: first, owner: { uid: 7, gid: 7 } })(fs)
      disk.setMetadata(numberOf(disk, `${target}/sub`), { mode: 0o577 }, 'chmod')
      disk.setMetadata(numberOf(disk, target), { mode: 0o755 }, 'chmod')
    },
    run: (fs, log) => {
      const user = Object.assign(fs, { user: { uid: 7, gid: 7 } })
      return directory({ files: second })(user, log)
    },
  },
  {
    name: 'ACLs and attributes that are kept, inherited, and changed meanwhile',
    ends: 'replaced, replaced',
    before: async (disk, fs) => {
      const lists = encoded(
        new Map([
          [access, listOf(7, 5, 5, 5, 5)],
          [byDefault, listOf(7, 5, 5, 5, 5)],
          ['user.note', 'kept'],
        ]),
      )
      await directory({ files: first })(fs)
      disk.setMetadata(numberOf(disk, target), { extended: lists }, 'setfacl')
      disk.setMetadata(numberOf(disk, `${target}/tls.crt`), { extended: lists }, 'setfacl')
      disk.setMetadata(numberOf(disk, `${target}/sub`), { extended: lists }, 'setfacl')
    },
    run: async (fs, log) => [await directory({ files: first })(fs, log), await directory({ files: second })(fs, log)],
  },
  ...(['user.note', access, byDefault] as const).flatMap((attribute) =>
    ['EPERM', 'ENOSPC'].map((code): Scene => ({
      name: `${attribute} that cannot be kept: ${code}`,
      before: async (disk, fs) => {
        await directory({ files: first })(fs)
        const text = attribute === 'user.note' ? 'kept' : listOf(7, 5, 5, 5, 5)
        disk.setMetadata(numberOf(disk, target), { extended: encoded(new Map([[attribute, text]])) }, 'setfacl')
      },
      run: (fs, log) => {
        const by = watched(fs, (_, call) => {
          if (call === 'setExtendedAttribute') throw failure(code, 'fsetxattr')
        })
        return directory({ files: second })(by, log)
      },
    })),
  ),
  {
    name: 'objects of what is not published',
    before: published({ files: first, objects: [object] }),
    run: (fs) => recordObjects(fs, target, 'sha256:other', []),
  },
]
