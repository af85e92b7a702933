import type { FileSystem } from '../../../src/durable/file-system.js'
import { publish } from '../../../src/durable/publish/publish.js'
import { directoryPublication, filePublication } from '../../../src/durable/publish/replace.js'
import type { PublicationOptions } from '../../../src/durable/types.js'
import type { Log } from '../../../src/log.js'
import { makeDirectory, makeEntry } from '../../crash/model/scenario.js'
import { link, numberOf, root, type Scene } from './scene.js'

const batch =
  (targets: readonly string[], options: PublicationOptions = {}, signal?: AbortSignal) =>
  (fs: FileSystem, log: Log): Promise<unknown> =>
    publish(
      targets.map((path) => directoryPublication(fs, { target: path, files: { a: path }, ...options, log })),
      signal,
    )

const abort = new AbortController()

/** Several targets at once. */
export const batches: readonly Scene[] = [
  { name: 'nothing', run: () => publish([]) },
  {
    name: 'three, locked in an order of their own',
    ends: 'created, created, created',
    run: batch(['/etc/pki/c', '/etc/manifests/b', '/etc/pki/a']),
  },
  {
    name: 'ten at once',
    ends: 'created, created, created, created, created, created, created, created, created, created',
    run: batch(Array.from({ length: 10 }, (_, index) => `/etc/pki/${index}`)),
  },
  { name: 'one below another', ends: 'TypeError', run: batch(['/etc/pki/a/b', '/etc/manifests/c', '/etc/pki/a']) },
  { name: 'two with a common beginning', ends: 'created, created', run: batch(['/etc/pki/ab', '/etc/pki/a']) },
  {
    name: 'one below another, by a link',
    ends: 'TypeError',
    before: (disk) => link(disk, '/etc/link', 'pki/a'),
    run: batch(['/etc/link/b', '/etc/pki/a']),
  },
  { name: 'the same twice', ends: 'TypeError', run: batch(['/etc/pki/a', '/etc/pki/b', '/etc/pki/a']) },
  {
    name: 'the same twice, by a mount',
    ends: 'TypeError',
    before: (disk) => {
      const mounted = disk.mountSecond('data', { mode: 0o755, ...root })
      makeDirectory(disk, '/etc/pki/data', 0o755)
      disk.mountOver(numberOf(disk, '/etc/pki'), 'data', mounted.number, '/')
    },
    run: batch(['/etc/pki/z', '/data/a', '/etc/pki/data/a']),
  },
  {
    name: 'some that cannot be',
    ends: 'TargetUnfit, TargetUnfit, TargetUnfit, created',
    before: (disk) => {
      for (const name of ['a', 'c']) makeEntry(disk, `/etc/pki/${name}`, 'file', 0o644, 'x')
      makeEntry(disk, '/etc/file', 'file', 0o644, 'x')
    },
    run: batch(['/etc/pki/a', '/etc/file/b', '/etc/pki/c', '/etc/pki/d']),
  },
  {
    name: 'one unchanged, one new',
    ends: 'unchanged, created',
    before: (_, fs) => publish([directoryPublication(fs, { target: '/etc/pki/a', files: { a: '/etc/pki/a' } })]),
    run: batch(['/etc/pki/a', '/etc/pki/b']),
  },
  {
    name: 'a file and a directory',
    ends: 'created, created',
    run: (fs, log) =>
      publish([
        filePublication(fs, '/etc/pki/pod.yaml', 'a', { log }),
        directoryPublication(fs, { target: '/etc/pki/certs', files: { a: 'a' }, log }),
      ]),
  },
  {
    name: 'abandoned while the content is examined',
    ends: 'PublishFailed, PublishFailed',
    run: (fs, log) => {
      const examine = (): Promise<void> => {
        abort.abort()
        return Promise.reject(new Error('stopped'))
      }
      const check = { accepts: () => undefined, examine }
      return batch(['/etc/pki/a', '/etc/pki/b'], { check }, abort.signal)(fs, log)
    },
  },
  {
    name: 'content that is not accepted, and content that is found wrong',
    ends: 'PublishFailed, PublishFailed, created',
    exempt: {
      'the answer is true of the disk': 'the check throws what it must not',
    },
    run: (fs, log) =>
      publish(
        ['a', 'b', 'c'].map((name) =>
          directoryPublication(fs, {
            target: `/etc/pki/${name}`,
            files: { [name]: name },
            log,
            check: {
              accepts: () => {
                if (name === 'a') throw new TypeError('not accepted')
              },
              examine: ({ directory, target, digest }) =>
                name === 'b' ? Promise.reject(new TypeError(`${directory} ${target} ${digest}`)) : Promise.resolve(),
            },
          }),
        ),
      ),
  },
]
