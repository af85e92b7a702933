// Own process: it counts the descriptors of its process.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { executable as program } from '../project.js'
import t, { type Test } from 'tap'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { openOffMounts, openTarget } from '../../src/durable/target/refusals.js'
import { inScope } from '../../src/durable/path/index.js'
import { codeOf } from '../../src/errors.js'
import { missingForDisk } from '../disk/disk.js'
import { scratch, scratchWith } from './scratch.js'

const notRoot = process.getuid?.() === 0 ? false : 'needs root to mount'

/** Runs the program in a new mount namespace, where `mounts` (source, place) are bound first. */
function holdfastUnder(mounts: readonly (readonly [string, string])[], args: readonly string[]) {
  const binds = mounts.map(([source, place]) => `mount --bind '${source}' '${place}' && `).join('')
  const { status, stdout, stderr } = spawnSync(
    'unshare',
    ['--mount', '--propagation', 'private', 'sh', '-c', `${binds}exec "$0" "$@"`, process.execPath, program, ...args],
    { encoding: 'utf8' },
  )
  return { code: status, stdout, stderr }
}

/** A published target with a subdirectory, new content for it, and another file system's data, mounted where the test says. */
function scene(t: Test) {
  const [root, data] = scratchWith(t, 'data')
  mkdirSync(join(data, 'deep'), { recursive: true })
  writeFileSync(join(data, 'precious'), 'somebody else needs this')
  writeFileSync(join(data, 'deep', 'more'), 'and this')
  mkdirSync(join(root, 'old', 'sub'), { recursive: true })
  writeFileSync(join(root, 'old', 'tls.crt'), 'old')
  writeFileSync(join(root, 'old', 'sub', 'file'), 'old')
  mkdirSync(join(root, 'new'))
  writeFileSync(join(root, 'new', 'tls.crt'), 'new')
  const target = join(root, 'node', 'certs')
  mkdirSync(join(root, 'node'))
  const first = holdfastUnder([], ['replace', target, '--from', join(root, 'old')])
  t.equal(first.code, 0, first.stderr)
  const untouched = (): void => {
    t.equal(readFileSync(join(data, 'precious'), 'utf8'), 'somebody else needs this')
    t.equal(readFileSync(join(data, 'deep', 'more'), 'utf8'), 'and this')
  }
  return { root, data, target, untouched }
}

await t.test(
  'a mount below the target: replace refuses, and nothing of the other file system is touched',
  { skip: notRoot },
  async (t) => {
    const { root, data, target, untouched } = scene(t)
    const result = holdfastUnder(
      [[data, join(target, 'sub')]],
      ['replace', target, '--from', join(root, 'new'), '-o', 'json'],
    )
    untouched()
    t.equal(result.code, 1)
    t.match(JSON.parse(result.stdout), { error: { reason: 'TargetUnfit', published: false } })
    t.match(result.stderr, /sub.* is a mount point/)
    t.equal(readFileSync(join(target, 'tls.crt'), 'utf8'), 'old', 'the target is what it was')
  },
)

await t.test('a file mounted over a file of the target is a mount below it, too', { skip: notRoot }, async (t) => {
  const { root, data, target, untouched } = scene(t)
  const result = holdfastUnder(
    [[join(data, 'precious'), join(target, 'tls.crt')]],
    ['replace', target, '--from', join(root, 'new'), '-o', 'json'],
  )
  untouched()
  t.equal(result.code, 1)
  t.match(JSON.parse(result.stdout), { error: { reason: 'TargetUnfit', published: false } })
  t.equal(readFileSync(join(target, 'tls.crt'), 'utf8'), 'old')
})

await t.test(
  'a leftover with a mount in it stays as it is, and is logged; the publication goes on',
  { skip: notRoot },
  async (t) => {
    const { root, data, target, untouched } = scene(t)
    const lock = readdirSync(join(root, 'node')).find((name) => name.endsWith('.lock')) ?? ''
    const leftover = join(root, 'node', lock.replace('.lock', '-0123456789abcdef'))
    mkdirSync(join(leftover, 'mounted'), { recursive: true })
    writeFileSync(join(leftover, 'file'), 'left by a predecessor')
    const result = holdfastUnder([[data, join(leftover, 'mounted')]], ['replace', target, '--from', join(root, 'new')])
    untouched()
    t.equal(result.code, 0, result.stderr)
    t.equal(readFileSync(join(target, 'tls.crt'), 'utf8'), 'new')
    t.ok(existsSync(join(leftover, 'mounted')))
    t.match(result.stderr, /mount/)
  },
)

await t.test(
  'sync refuses a target with a mount below it, and the other directories go on',
  { skip: notRoot },
  async (t) => {
    const { root, data, target, untouched } = scene(t)
    const objects = join(root, 'objects')
    mkdirSync(objects)
    writeFileSync(
      join(objects, 'ca.yaml'),
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'ca', namespace: 'demo' },
        data: { 'tls.crt': 'new' },
      }),
    )
    const other = join(root, 'node', 'other')
    const directories = [target, other].map((path) => ({ path, adopt: true, contents: [{ configMap: 'ca' }] }))
    const configuration = join(root, 'holdfast.yaml')
    writeFileSync(
      configuration,
      JSON.stringify({
        apiVersion: 'holdfast.dev/v1alpha1',
        kind: 'AgentConfiguration',
        stateDirectory: join(root, 'state'),
        source: { namespace: 'demo', files: { path: objects } },
        directories,
      }),
    )
    const result = holdfastUnder([[data, join(target, 'sub')]], ['sync', '--config', configuration])
    untouched()
    t.equal(result.code, 1)
    t.match(result.stdout + result.stderr, /TargetUnfit/)
    t.equal(readFileSync(join(other, 'tls.crt'), 'utf8'), 'new')
  },
)

await t.test('prune leaves a revision with a mount in it, and says so', { skip: notRoot }, async (t) => {
  const { root, data, untouched } = scene(t)
  const resources = join(root, 'resources')
  for (const revision of [1, 2, 3]) {
    mkdirSync(join(resources, `web-pod-${revision}`, 'secrets'), { recursive: true })
    writeFileSync(join(resources, `web-pod-${revision}`, 'web-pod.yaml'), '{}')
  }
  const result = holdfastUnder(
    [[data, join(resources, 'web-pod-1', 'secrets')]],
    ['prune', '--max-eligible-revision', '2', '--resource-dir', resources, '--static-pod-name', 'web-pod'],
  )
  untouched()
  t.equal(result.code, 1)
  t.match(result.stdout + result.stderr, /web-pod-1.*mount/s)
  t.notOk(existsSync(join(resources, 'web-pod-2')), 'the other one went')
})

const missing = await missingForDisk(['btrfs'])

await t.test(
  'a subvolume of btrfs lies in the old path wherever it is mounted: sync does not move that into itself',
  { skip: missing.length > 0 && `needs ${missing.join(', ')}` },
  async (t) => {
    const root = scratch(t)
    mkdirSync(join(root, 'objects'))
    const metadata = { name: 'ca', namespace: 'demo' }
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'tls.crt': 'new' } }
    writeFileSync(join(root, 'objects/ca.yaml'), JSON.stringify(object))
    const configure = (name: string, directory: object): void => {
      const configuration = {
        apiVersion: 'holdfast.dev/v1alpha1',
        kind: 'AgentConfiguration',
        stateDirectory: join(root, 'state'),
        source: { namespace: 'demo', files: { path: join(root, 'objects') } },
        directories: [{ ...directory, contents: [{ configMap: 'ca' }] }],
      }
      writeFileSync(join(root, name), JSON.stringify(configuration))
    }
    const was = join(root, 'disk/was')
    configure('first.yaml', { path: was })
    configure('second.yaml', { path: join(root, 'other/certs'), movedFrom: was, movedFromKeep: '1s' })
    const script = `
      set -e
      truncate -s 128M image
      mkfs.btrfs -q image
      mkdir disk other
      mount -o loop image disk
      "$0" "$1" sync --config first.yaml >&2
      btrfs subvolume create disk/was/inner >&2
      mount -o subvol=was/inner "$(findmnt -n -o SOURCE disk)" other
      exec "$0" "$1" sync --config second.yaml`
    const { status, stdout, stderr } = spawnSync(
      'unshare',
      ['--mount', '--propagation', 'private', 'sh', '-c', script, process.execPath, program],
      { cwd: root, encoding: 'utf8' },
    )
    t.match(
      { status, stdout },
      { status: 1, stdout: /TargetUnfit: .*the same directory, or one lies in the other/ },
      stderr,
    )
  },
)

await t.test('a refused target leaves no descriptor open', async (t) => {
  const fs = new NodeFileSystem()
  const parent = scratch(t)
  mkdirSync(join(parent, 'certs'))
  const directory = await fs.openPath(parent)
  const attributes = await fs.attributes(directory)
  const ask = (device: number) =>
    inScope(fs, async (scope) => {
      const above = { directory, attributes: { ...attributes, device } }
      return openTarget(scope, join(parent, 'certs'), above, 'certs')
    })
  const open = (): number => readdirSync('/proc/self/fd').length
  const before = open()
  await ask(attributes.device)
  t.equal(await ask(attributes.device + 1).catch(codeOf), 'EXDEV')
  t.equal(open(), before)
  await fs.close(directory)
  const root = await fs.openPath('/')
  t.equal(await openOffMounts(fs, '/proc', root, 'proc').catch(codeOf), 'EBUSY')
  await fs.close(root)
})
