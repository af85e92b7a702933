/** Mistakes in the place of an installation: found before the first write, or reported with the files left behind. */
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { DurableWriteError } from '../../../src/durable/errors.js'
import { DurableCalls } from '../../../src/durable/index.js'
import { resultsOf } from '../../../src/durable/publish/publish.js'
import { begin, ended, run, type Ended } from '../command.js'
import { NodeDisk, podText } from '../pods.js'
import { needsRoot, openDirectoryIn, strangerMakes, strangersKinds } from '../../durable/stranger.js'
import { executable } from '../../project.js'

const canMount = spawnSync('unshare', ['--mount', 'sh', '-c', 'mount -t tmpfs none /mnt']).status === 0

/** A node with a manifest and a file for its revision, and the arguments that install revision 7 of it. */
class Place extends NodeDisk {
  readonly source = join(this.root, 'web-pod.yaml')
  readonly files = join(this.root, 'files')

  constructor(t: Test) {
    super(t)
    mkdirSync(join(this.files, 'secrets/tls'), { recursive: true })
    writeFileSync(join(this.files, 'secrets/tls/tls.key'), 'key of REVISION')
    writeFileSync(this.source, podText())
  }

  args(...more: string[]): string[] {
    return [
      ...['install', this.source, '--pod-manifest-dir', this.manifests, '--resource-dir', this.resources],
      ...['--resources', this.files, '--revision', '7', ...more],
    ]
  }
}

const warnings = ({ stderr }: Ended): { path?: string; msg: string }[] =>
  stderr
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as { path?: string; msg: string })

await t.test('install refuses an unfit place for a file, and leaves no revision there', async (t) => {
  const cases: [string, (place: Place) => string[], RegExp, number][] = [
    [
      'a file for a manifest directory',
      (place) => (writeFileSync(place.manifests, ''), []),
      /manifests is not a directory; holdfast left .*manifests\/web-pod\.yaml as it was/,
      1,
    ],
    [
      'a directory for a manifest',
      (place) => (mkdirSync(place.manifest(), { recursive: true }), []),
      /web-pod\.yaml is a directory; nothing was changed/,
      1,
    ],
    [
      'a link for a manifest',
      (place) => (mkdirSync(place.manifests), symlinkSync(place.source, place.manifest()), []),
      /web-pod\.yaml is a symbolic link; nothing was changed/,
      1,
    ],
    [
      'a manifest directory that everybody may write to',
      (place) => (mkdirSync(place.manifests), chmodSync(place.manifests, 0o777), []),
      /everybody may write to .*manifests, which is not sticky/,
      1,
    ],
    [
      'a directory for a lock',
      (place) => (mkdirSync(place.lock), ['--pod-manifests-lock-file', place.lock]),
      /installer\.lock is not a regular file; nothing was changed/,
      1,
    ],
    ['the root directory', () => ['--resource-dir', '/'], /--resource-dir is \//, 2],
    [
      "kubelet's own directory",
      (place) => ['--resource-dir', place.manifests],
      /--resource-dir and --pod-manifest-dir are both .*manifests/,
      2,
    ],
    [
      'a manifest directory inside of the revision',
      (place) => ['--pod-manifest-dir', place.revision(7)],
      /the manifest directory .*web-pod-7 lies in/,
      2,
    ],
    [
      'a link among the resources',
      (place) => (symlinkSync('/etc', join(place.files, 'link')), []),
      /files\/link is a symbolic link: replace it by the file that it leads to/,
      2,
    ],
  ]
  for (const [what, prepare, message, code] of cases) {
    const place = new Place(t)
    const more = prepare(place)
    for (const dry of [[], ['--dry-run']]) {
      const result = await run(place.args(...more, ...dry))
      t.equal(result.code, code, `${what} ${dry.join('')}: ${result.stderr}`)
      t.match(result.stderr, message, what)
      t.equal(result.stdout, '', what)
    }
    t.notOk(existsSync(place.resources), `${what}: nothing was written`)
  }
})

for (const kind of strangersKinds) {
  await t.test(
    `install refuses another user's ${kind} in the place of a lock before any work`,
    needsRoot,
    async (t) => {
      const place = new Place(t)
      const locks = openDirectoryIn(place.root, 'locks')
      await strangerMakes(t, locks, 'web.lock', kind)
      const refused = await run(place.args('--pod-manifests-lock-file', join(locks, 'web.lock')))
      t.match(refused, {
        code: 1,
        stderr: /the lock \S+ belongs to user 65534; nothing was changed; name a lock in a directory where only root/,
      })
      t.notOk(existsSync(place.resources), 'nothing was written')
    },
  )
}

await t.test(
  'install refuses a read-only file system',
  { skip: canMount ? false : 'needs root to mount' },
  async (t) => {
    const place = new Place(t)
    mkdirSync(place.manifests)
    const script = 'dir=$1; shift; mount -t tmpfs -o ro none "$dir" && exec "$@"'
    const inside = async (args: readonly string[]): Promise<Ended> => {
      const words = [
        'sh',
        '-c',
        script,
        'sh',
        place.manifests,
        'env',
        '-i',
        'HOLDFAST_LOG_FORMAT=json',
        process.execPath,
        executable,
        ...args,
      ]
      return ended(spawn('unshare', ['--mount', '--propagation', 'private', ...words]))
    }
    const refused = await inside(place.args())
    t.equal(refused.code, 1, refused.stderr)
    t.match(
      refused.stderr,
      /could not write to .*manifests: EROFS; nothing was changed; the file system is read-only: mount it read-write/,
    )
    t.notOk(existsSync(place.resources), 'nothing was written')
    const dry = await inside(place.args('--dry-run'))
    t.equal(dry.code, 0, dry.stderr)
    t.match(warnings(dry), [{ path: place.manifests, msg: /could not write to .*: EROFS/ }])
  },
)

await t.test('install reports another manifest of the same pod', async (t) => {
  const place = new Place(t)
  place.makeManifest(podText({ labels: {} }), 'web.yaml.bak')
  place.makeManifest(podText({ name: 'other' }), 'other.yaml')
  place.makeManifest(podText({ namespace: 'default' }), 'elsewhere.yaml')
  place.makeManifest('no pod', 'notes')
  const result = await run(place.args('--log-format=json'))
  t.equal(result.code, 0, result.stderr)
  const reported = warnings(result).filter(({ msg }) => msg.includes('same pod'))
  t.match(reported, [{ path: join(place.manifests, 'web.yaml.bak'), msg: /runs only one of them at a time/ }])
  t.equal(reported.length, 1)
})

await t.test('install reports the written revision where a lock holds it up afterwards', async (t) => {
  const place = new Place(t)
  const lock = ['--pod-manifests-lock-file', place.lock, '--timeout-duration', '8s']
  const held = await new DurableCalls().lock(place.lock, 0, undefined)
  const busy = await run(place.args(...lock))
  t.equal(busy.code, 75, busy.stderr)
  t.match(
    busy.stderr,
    /the manifests are as they were; try again when the lock is free; already written: .*web-pod-7; /,
  )
  t.notMatch(busy.stderr, /nothing was changed/)
  t.notOk(existsSync(place.manifest()))
  await held.release()
  const again = await run([...place.args(...lock), '-o', 'json'])
  t.match(JSON.parse(again.stdout), {
    directories: [{ outcome: 'unchanged' }],
    manifests: [{ outcome: 'created' }],
  })
  const late = await run(place.args('--timeout-duration', '1ns'))
  t.equal(late.code, 1)
  t.match(late.stderr, /the installation was not done within 0\.001 s \(--timeout-duration\)/)
})

await t.test('install reports the gravest failure of a batch, and the fate of the rest', async (t) => {
  const done = (path: string, outcome: 'created' | 'unchanged') => ({ path, outcome, digest: 'sha256:x', sequence: 1 })
  const error = (path: string, published: boolean) => ({
    error: new DurableWriteError(`${path} failed`, { code: 'EIO', syscall: 'fsync', path, published }),
  })
  t.same(resultsOf([done('/a', 'created')]), [done('/a', 'created')])
  const outcomes = [error('/a', false), error('/b', true), done('/c', 'created'), done('/d', 'unchanged')]
  t.throws(() => resultsOf(outcomes), {
    name: 'DurableWriteError',
    message: '/b failed; these failed too: /a; these were published all the same: /c',
    code: 'EIO',
    path: '/b',
    published: true,
    reason: 'DurabilityUnknown',
  })
  const many = Array.from({ length: 9 }, (_, n) => done(`/${n}`, 'created'))
  t.throws(() => resultsOf([error('/a', false), ...many]), {
    message: /all the same: \/0, \/1, \/2 and 6 more$/,
  })
})

await t.test('of two installations at once, both succeed, and one of them has published', async (t) => {
  const place = new Place(t)
  const results = await Promise.all([0, 1].map(() => run(place.args('-o', 'json'))))
  t.same(
    results.map(({ code }) => code),
    [0, 0],
  )
  const outcomes = results.map(({ stdout }) => JSON.parse(stdout) as { manifests: { outcome: string }[] })
  t.same(outcomes.map(({ manifests: [manifest] }) => manifest?.outcome).sort(), ['created', 'unchanged'])
  t.equal(readFileSync(join(place.revision(7), 'secrets/tls/tls.key'), 'utf8'), 'key of 7')
})

await t.test('install succeeds without a reader of its output', async (t) => {
  const place = new Place(t)
  const child = begin(place.args())
  child.stdout?.destroy()
  const { code, stderr } = await ended(child)
  t.equal(code, 0, stderr)
  t.ok(existsSync(place.manifest()))
})

await t.test('install from a file refuses the flags of the API, and ignores its variables', async (t) => {
  const place = new Place(t)
  for (const flag of ['--kubeconfig', '--context', '--namespace']) {
    const refused = await run(place.args(flag, 'x'))
    t.match(refused, { code: 2, stderr: new RegExp(`${flag} belongs to an installation from the API`) })
  }
  for (const result of [
    await run(place.args('--node-name', '../n')),
    await run(place.args(), { HOLDFAST_NODE_NAME: '../n' }),
    await run(place.args(), { NODE_NAME: '../n' }),
  ])
    t.match(result, { code: 2, stderr: /must be a name that Kubernetes allows/i })
  t.same(readdirSync(place.root).sort(), ['files', 'web-pod.yaml'], 'nothing was written')
  const environment = {
    HOLDFAST_KUBECONFIG: '/x',
    HOLDFAST_CONTEXT: 'x',
    HOLDFAST_NAMESPACE: 'x',
    NODE_NAME: '',
  }
  const taken = await run(place.args('--node-name='), environment)
  t.equal(taken.code, 0, 'what the environment holds for other commands does not matter')
})
