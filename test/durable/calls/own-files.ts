import { OwnFile } from '../../../src/durable/index.js'
import type { ModelDisk } from '../../crash/model/model-disk.js'
import { find } from '../../crash/model/content.js'
import { moveAway, putBack } from '../../crash/model/foreigners.js'
import { makeDirectory } from '../../crash/model/scenario.js'
import { diskOf, file, type Scene } from './scene.js'

const state = '/etc/pki/state'
const path = `${state}/status.json`
/** Of more than a sector, so that a power cut may leave a part. */
const addition = 'x'.repeat(700)

/** The file has one of these texts; a power cut may leave a part of an addition. */
const holds =
  (...texts: readonly string[]): NonNullable<Scene['stopped']> =>
  (disk) => {
    const { data = '', attributes } = find(disk, path)?.now ?? {}
    const isWhole = texts.includes(data) && (data === '' || attributes?.mode === 0o600)
    return Promise.resolve(isWhole || data.startsWith('second') ? undefined : `${path} is torn or old: ${data}`)
  }

const exempt: Scene['exempt'] = { 'the lock is held at each change': 'only its own process writes the file' }

const writesTwice =
  (meanwhile: (disk: ModelDisk) => void): Scene['run'] =>
  async (fs) => {
    const own = new OwnFile(path, fs)
    await own.replace('first')
    meanwhile(diskOf(fs))
    await own.replace('second')
  }

const twice = { exempt, dies: true, promises: holds('second'), stopped: holds('', 'first', 'second') } as const

/** A file that a process keeps for itself. */
export const ownFiles: readonly Scene[] = [
  { ...twice, name: 'own file, in a directory that is not there yet', run: writesTwice(() => undefined) },
  {
    ...twice,
    name: 'own file, of a version that published it',
    exempt: {},
    before: (disk, fs) => {
      makeDirectory(disk, state, 0o755)
      return file('first', { mode: 0o600 }, path)(fs)
    },
    stopped: holds('first', 'second'),
    run: (fs) => new OwnFile(path, fs).replace('second'),
  },
  {
    ...twice,
    name: 'own file, whose directory goes between two writes',
    run: writesTwice((disk) => moveAway(disk, state)),
  },
  {
    ...twice,
    name: 'own file, above which another program moves a directory between two writes',
    run: writesTwice((disk) => {
      moveAway(disk, state)
      putBack(disk, state)
    }),
  },
  {
    ...twice,
    name: 'own file, to which something is added',
    promises: holds(`second${addition}`),
    run: async (fs) => {
      const own = new OwnFile(path, fs)
      await own.replace('second')
      if (!(await own.append(addition))) throw new Error('nothing is added to a file that is as it was left')
    },
  },
]
