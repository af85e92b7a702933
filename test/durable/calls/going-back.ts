import type { FileSystem } from '../../../src/durable/file-system.js'
import { setHold } from '../../../src/durable/operator/hold.js'
import { readPublication, readRecord } from '../../../src/durable/look/inspect.js'
import { listKept } from '../../../src/durable/look/list-kept.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { completeHook, recordObjects } from '../../../src/durable/record/record-files.js'
import { publish } from '../../../src/durable/publish/publish.js'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import { rollBack } from '../../../src/durable/operator/rollback.js'
import { readContent } from '../../../src/durable/look/target-content.js'
import { find } from '../../crash/model/content.js'
import type { ModelDisk } from '../../crash/model/model-disk.js'
import { ModelProcess } from '../../crash/model/model-process.js'
import { powerCut } from '../../crash/model/power-cut.js'
import { makeEntry } from '../../crash/model/scenario.js'
import { failure } from '../intercepted.js'
import { symlinked } from './forms.js'
import {
  by,
  directory,
  first,
  numberOf,
  object,
  published,
  Refusal,
  refused,
  second,
  target,
  watched,
  type Scene,
} from './scene.js'

const parent = '/etc/pki'
const names = namesFor('certs')
const third = { 'tls.crt': 'third certificate', 'sub/a': '1' }
const history = { keep: 2, maxAge: null }
const pin = { reason: 'again', until: 'released' } as const

/** Three publications, of which the last two earlier ones stay. */
const thrice =
  (form: object = {}) =>
  async (_: ModelDisk, fs: FileSystem): Promise<void> => {
    for (const files of [first, second, third]) await directory({ files, history, objects: [object], ...form })(fs)
  }

/** Names of the earlier contents, the oldest first. */
const generationsOn = (disk: ModelDisk): string[] =>
  [...disk.inode(numberOf(disk, parent)).now.entries.keys()].filter((name) => names.isGeneration(name)).sort()

const isBack = (disk: ModelDisk): boolean => find(disk, `${target}/tls.crt`)?.now.data === 'new certificate'

async function isPinned(disk: ModelDisk): Promise<string | undefined> {
  const { pin } = (await readPublication(new ModelProcess(disk.fork()), target)) ?? {}
  return isBack(disk) && pin !== undefined ? undefined : 'it is not rolled back'
}

/** All who tell of a pin agree, and it keeps out a publisher that acts by itself: where the target was rolled back, and nowhere else. */
async function faultOfPin(disk: ModelDisk): Promise<string | undefined> {
  const fs = new ModelProcess(disk.fork())
  const beside = (await listKept(fs, parent)).find(({ name }) => name === 'certs')
  const pins = [(await readPublication(fs, target))?.pin, (await readRecord(fs, target))?.hold, beside?.pin]
  const [pin, ...others] = pins.map((one) => JSON.stringify(one))
  if (others.some((other) => other !== pin)) return `its pin is ${[pin, ...others].join(' and ')}`
  const request = { target, files: third, history, supersedes: () => false }
  const [outcome] = await publish([directoryPublication(fs, request)])
  const isRefused = outcome !== undefined && 'error' in outcome && outcome.error.reason === 'RolledBack'
  if (isRefused !== (pin !== undefined))
    return `its pin is ${pin}, and a publisher ${isRefused ? 'is' : 'is not'} refused`
  return isRefused && !isBack(disk) ? 'it is pinned, and was not rolled back' : undefined
}

/** On this boot, and after the next. */
const pinsOnlyWhatIsBack = async (disk: ModelDisk): Promise<string | undefined> =>
  (await faultOfPin(disk)) ?? faultOfPin(powerCut(disk, () => 0))

const digestOf = async (fs: FileSystem): Promise<string> => (await readPublication(fs, target))?.digest ?? ''

/** Scenes of earlier contents: publications, reads of them, and lines that a record gets later. */
export const goingBack: readonly Scene[] = [
  {
    name: 'taking back',
    ends: 'replaced',
    dies: true,
    meets: true,
    before: thrice(),
    run: (fs, log, signal) => rollBack(fs, target, { pin, to: 2, ...by(log, signal) }),
    promises: isPinned,
    stopped: pinsOnlyWhatIsBack,
  },
  {
    name: 'taking back what another program has changed',
    ends: 'replaced',
    dies: true,
    before: async (disk, fs) => {
      await thrice()(disk, fs)
      disk.append(numberOf(disk, `${target}/tls.crt`), 'more')
    },
    run: (fs, log) => rollBack(fs, target, { pin, to: 2, log }),
    promises: isPinned,
    stopped: pinsOnlyWhatIsBack,
  },
  {
    name: 'taking back by number, in the symlink form, and publishing then',
    ends: 'replaced, replaced',
    before: thrice(symlinked),
    run: async (fs, log) => [
      await rollBack(fs, target, { pin, to: 1, log }),
      await directory({ files: third, history, objects: [object], ...symlinked })(fs, log).catch(refused),
    ],
  },
  {
    name: 'taking back what is not there, or is damaged, or is not confirmed',
    ends: 'TargetUnfit, TargetUnfit, TargetUnfit, Error, replaced, TargetUnfit',
    before: async (disk, fs) => {
      await thrice()(disk, fs)
      const [oldest = ''] = generationsOn(disk)
      makeEntry(disk, `${parent}/${oldest}/certs/added`, 'file', 0o600, 'x')
    },
    run: async (fs, log) => {
      const confirmFiles = (): void => {
        throw new Refusal('not these')
      }
      const asked = [{ to: 1 }, { to: 3 }, { to: 7 }, { to: 2, confirmFiles }, { to: 2, pin: { reason: '', until: 1 } }]
      const answers: unknown[] = []
      for (const options of asked) answers.push(await rollBack(fs, target, { pin, log, ...options }).catch(refused))
      return [...answers, await rollBack(fs, '/etc/none/certs', { pin }).catch(refused)]
    },
  },
  {
    name: 'less of the past is to stay',
    ends: 'unchanged',
    before: thrice(),
    run: directory({ files: third, history: { keep: 1, maxAge: null }, objects: [object] }),
  },
  {
    name: 'less of the past is to stay, and cannot be removed',
    ends: 'unchanged',
    before: thrice(),
    run: (fs, log) => {
      const by = watched(fs, (_, call) => {
        if (call === 'removeDirectory') throw failure('EROFS', 'rmdir')
      })
      return directory({ files: third, history: { keep: 0, maxAge: null }, objects: [object] })(by, log)
    },
  },
  {
    name: 'less of the past is to stay of what is held',
    ends: 'unchanged',
    before: async (disk, fs) => {
      await thrice()(disk, fs)
      await setHold(fs, target, { reason: '', since: 1, until: null }, {})
    },
    run: directory({ files: third, history: { keep: 0, maxAge: null }, objects: [object] }),
  },
  {
    name: 'whose mode and owner are is said of content that stays',
    ends: 'unchanged, unchanged, unchanged, unchanged',
    before: published({ files: first }),
    run: async (fs, log) => [
      await directory({ files: first, attributes: 'keep' })(fs, log),
      await directory({ files: first, attributes: 'keep' })(fs, log),
      await directory({ files: first })(fs, log),
      await directory({ files: first })(fs, log),
    ],
  },
  {
    name: 'read: what is there, what was, and what is damaged',
    ends: 'TargetUnfit, TargetUnfit, TargetUnfit, TargetUnfit',
    before: async (disk, fs) => {
      await thrice()(disk, fs)
      const [oldest = ''] = generationsOn(disk)
      makeEntry(disk, `${parent}/${oldest}/certs/added`, 'file', 0o600, 'x')
      disk.append(numberOf(disk, `${target}/sub/a`), 'more')
      makeEntry(disk, `${target}/added`, 'file', 0o600, 'x')
    },
    run: async (fs) => {
      const answers: unknown[] = [await readContent(fs, target)]
      for (const sequence of [1, 2, 3, 7]) answers.push(await readContent(fs, target, sequence).catch(refused))
      answers.push(await readContent(fs, '/etc/none/certs'))
      return [...answers, await readContent(fs, '/etc/none/certs', 1).catch(refused)]
    },
  },
  {
    name: 'what is told to a record, and to none',
    ends: 'Error',
    before: published({ files: first, hooks: ['reload'] }),
    run: async (fs) => {
      const digest = await digestOf(fs)
      const by = watched(fs, (_, call) => {
        if (call === 'openAppend') throw failure(code, 'open')
      })
      let code = 'ENOENT'
      const superseded = await completeHook(by, target, digest, 'reload')
      code = 'EIO'
      const failed = await recordObjects(by, target, digest, []).catch(refused)
      Object.assign(by, { before: undefined })
      return [
        ...[superseded, failed, await completeHook(fs, target, digest, 'reload')],
        ...[
          await recordObjects(fs, target, 'sha256:other', []),
          await completeHook(fs, '/etc/pki/none/certs', digest, 'a'),
        ],
      ]
    },
  },
]
