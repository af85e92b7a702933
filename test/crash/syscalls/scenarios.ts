/** The scenarios of the sweep: commands of the program, each from the same state of the disk in every run. */
import { join } from 'node:path'
import { library } from './distribution.js'
import { clean, configure, placeOf, put, runSync, type Scenario, synced, syncArgs } from './scene.js'

const owner = process.geteuid?.() === 0 ? { uid: 1, gid: 1 } : undefined
const ownerArgs = owner ? ['--owner', `${owner.uid}:${owner.gid}`] : []
const old = { 'tls.crt': 'old certificate', 'sub/tls.key': 'old key', gone: 'old' }
const now = { 'tls.crt': 'new certificate', 'sub/tls.key': 'new key', added: 'new' }
const fileMode = 0o640

function replace(
  name: string,
  target: string,
  details: Pick<Scenario, 'before' | 'after'> & { first?: true; threads?: true },
): Scenario {
  return {
    name,
    targets: [target],
    ...(details.threads ? { env: { HOLDFAST_AIO: 'off' } } : {}),
    async prepare(root) {
      const place = clean(root)
      put(join(root, 'from'), now)
      if (!details.first) await (await library()).replaceDirectory(join(place, target), { files: old })
    },
    args: (root) => {
      const place = join(placeOf(root), target)
      return [
        'replace',
        place,
        '--from',
        join(root, 'from'),
        '--parents',
        '--file-mode',
        '0640',
        ...ownerArgs,
        '-o',
        'json',
      ]
    },
    async again(root) {
      const { replaceDirectory } = await library()
      const path = join(placeOf(root), target)
      const options = { files: now, fileMode, ...(owner ? { owner } : {}) }
      return [(await replaceDirectory(path, options)).outcome]
    },
    before: details.before,
    after: details.after,
  }
}

function write(name: string, details: { first?: true; threads?: true } & Pick<Scenario, 'before' | 'after'>) {
  const path = (root: string): string => join(placeOf(root), 'pod.yaml')
  return {
    name,
    targets: ['pod.yaml'],
    input: 'new',
    ...(details.threads ? { env: { HOLDFAST_AIO: 'off' } } : {}),
    async prepare(root) {
      clean(root)
      if (!details.first) await (await library()).replaceFile(path(root), 'old')
    },
    args: (root) => ['write', path(root), '--mode', '0640', ...ownerArgs, '-o', 'json'],
    async again(root) {
      const { replaceFile } = await library()
      const options = { mode: fileMode, ...(owner ? { owner } : {}) }
      return [(await replaceFile(path(root), 'new', options)).outcome]
    },
    before: details.before,
    after: details.after,
  } satisfies Scenario
}

/** One batch: an exchange, a directory with links, a first publication. */
function sync(): Scenario {
  const targets = ['exchanged', 'linked', 'deep/first']
  return {
    name: 'sync, a batch of three',
    targets,
    async prepare(root) {
      clean(root)
      const { replaceDirectories } = await library()
      const files = synced('old')
      const outcomes = await replaceDirectories([
        { target: join(placeOf(root), 'exchanged'), files },
        { target: join(placeOf(root), 'linked'), files, publish: 'symlink' },
      ])
      if (outcomes.some((outcome) => 'error' in outcome)) throw new Error(JSON.stringify(outcomes))
      const publish = (name: string): string => (name === 'linked' ? 'symlink' : 'exchange')
      const directories = targets.map((name) => ({ path: join(placeOf(root), name), publish: publish(name) }))
      configure(root, 'new', directories)
    },
    args: syncArgs,
    again: runSync,
    before: ['flock LOCK', 'io_submit ', 'io_getevents ', 'sync_file_range RECORD', 'sync_file_range deep/RECORD'],
    after: ['io_submit ', 'io_getevents ', 'write RECORD', 'write deep/RECORD'],
  }
}

const staged = ['added', 'tls.crt', 'sub/tls.key']
const written = staged.flatMap((path) => [
  `write STAGING/${path}`,
  ...(owner ? [`fchown STAGING/${path}`] : []),
  `fchmod STAGING/${path}`,
  `sync_file_range STAGING/${path}`,
])
const recorded = ['write RECORD', 'sync_file_range RECORD, waiting']

export const scenarios: readonly Scenario[] = [
  replace('replace', 'certs', {
    before: ['flock LOCK', ...written, ...recorded, 'io_submit ', 'io_getevents '],
    after: ['io_submit ', 'io_getevents ', 'unlink tls.key', 'write RECORD', 'rmdir STAGING', 'unlink RECORD'],
  }),
  replace('replace, without AIO', 'certs', {
    threads: true,
    before: [
      ...staged.map((path) => `fsync STAGING/${path}`),
      ...['fsync STAGING', 'fsync STAGING/sub', 'fsync RECORD', 'fsync '],
    ],
    after: ['fsync ', 'write RECORD'],
  }),
  replace('replace, first, with new ancestors', 'deep/er/certs', {
    first: true,
    threads: true,
    before: [
      ...staged.map((path) => `fsync deep/er/STAGING/${path}`),
      ...['fsync deep/er/STAGING', 'fsync deep/er/STAGING/sub', 'fsync deep/er/RECORD', 'fsync deep/er'],
      ...['fsync deep', 'fsync '],
    ],
    after: ['fsync deep/er', 'openat STAGING', 'unlink STAGING', 'write deep/er/RECORD'],
  }),
  write('write', {
    before: ['flock LOCK', 'write STAGING', 'fchmod STAGING', 'sync_file_range STAGING', 'io_submit '],
    after: ['io_submit ', 'io_getevents ', 'openat STAGING', 'unlink STAGING', 'write RECORD', 'unlink RECORD'],
  }),
  write('write, first, without AIO', {
    first: true,
    threads: true,
    before: ['fsync STAGING', 'fsync RECORD', 'fsync '],
    after: ['fsync ', 'openat STAGING', 'unlink STAGING', 'write RECORD'],
  }),
  sync(),
]
