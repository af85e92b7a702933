/** What is swept: commands of the program, each from a state of the disk that is made again for every run. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { library, plainNode } from './distribution.js'

export interface Scenario {
  readonly name: string
  /** Targets, relative to the directory that all of this happens in. */
  readonly targets: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
  /** Makes what is there before. */
  readonly prepare: (root: string) => Promise<void>
  readonly args: (root: string) => string[]
  /** The same once more; resolves to each target's outcome, or throws. */
  readonly again: (root: string, executable: string) => Promise<string[]>
  /** Calls that every run must make, as `call subject`, before the exchange and after it: the algorithm's own promise. */
  readonly before: readonly string[]
  readonly after: readonly string[]
}

const owner = process.geteuid?.() === 0 ? { uid: 1, gid: 1 } : undefined
const ownerArgs = owner ? ['--owner', `${owner.uid}:${owner.gid}`] : []
const old = { 'tls.crt': 'old certificate', 'sub/tls.key': 'old key', gone: 'old' }
const now = { 'tls.crt': 'new certificate', 'sub/tls.key': 'new key', added: 'new' }
const fileMode = 0o640

/** Everything of a scenario is below this directory; nothing that Node reads for itself is. */
export const placeOf = (root: string): string => join(root, 'place')

function put(directory: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), text)
  }
}

function clean(root: string): string {
  const place = placeOf(root)
  rmSync(place, { recursive: true, force: true })
  mkdirSync(place)
  return place
}

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
  const configuration = (root: string): string => join(root, 'holdfast.yaml')
  const contents = [{ secret: 'pair' }, { secret: 'other', into: 'sub' }]
  const targets = ['exchanged', 'linked', 'deep/first']
  const objects = (root: string, version: string): void => {
    const secret = (name: string, data: object): string =>
      JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData: data })
    const gone = version === 'old' ? { gone: version } : { added: version }
    put(join(root, 'objects'), {
      'pair.yaml': secret('pair', { certificate: version, key: version, ...gone }),
      'other.yaml': secret('other', { more: version }),
    })
  }
  const configure = (root: string, names: readonly string[]): void => {
    const publish = (name: string): string => (name === 'linked' ? 'symlink' : 'exchange')
    const document = {
      apiVersion: 'holdfast.dev/v1alpha1',
      kind: 'AgentConfiguration',
      stateDirectory: join(root, 'state'),
      source: { namespace: 'demo', files: { path: join(root, 'objects') } },
      directories: names.map((name) => ({
        path: join(placeOf(root), name),
        publish: publish(name),
        contents,
      })),
    }
    writeFileSync(configuration(root), JSON.stringify(document))
  }
  const run = async (root: string, executable: string): Promise<string[]> => {
    const command = plainNode([executable, 'sync', '--config', configuration(root), '-o', 'json'])
    const child = spawn('env', command, { stdio: ['ignore', 'pipe', 'pipe'] })
    const text = { stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text.stdout += chunk))
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (text.stderr += chunk))
    const [code] = (await once(child, 'close')) as [number | null]
    if (code !== 0) throw new Error(`exit ${code}: ${text.stdout}${text.stderr}`)
    const { directories } = JSON.parse(text.stdout) as { directories: { outcome: string }[] }
    return directories.map(({ outcome }) => outcome)
  }
  return {
    name: 'sync, a batch of three',
    targets,
    async prepare(root) {
      clean(root)
      const { replaceDirectories } = await library()
      const files = { certificate: 'old', key: 'old', gone: 'old', 'sub/more': 'old' }
      const outcomes = await replaceDirectories([
        { target: join(placeOf(root), 'exchanged'), files },
        { target: join(placeOf(root), 'linked'), files, publish: 'symlink' },
      ])
      if (outcomes.some((outcome) => 'error' in outcome)) throw new Error(JSON.stringify(outcomes))
      objects(root, 'new')
      configure(root, targets)
    },
    args: (root) => ['sync', '--config', configuration(root), '-o', 'json'],
    again: run,
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
const recorded = ['write RECORD', 'sync_file_range RECORD', 'sync_file_range RECORD, waiting']

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
