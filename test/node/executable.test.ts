/**
 * The single executable of scripts/executable.sh on a bare Debian: the root of the image's base, without its Node. It exercises
 * libc (koffi's binary), a thread, and the files that elsewhere lie beside the program.
 */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { workingDirectory } from '../e2e/guard.js'
import { project } from '../project.js'
import { imageDirectory } from './image.js'
import { unfit } from './requirements.js'

const reason = await unfit()
if (reason === undefined) await suite()
else t.plan(0, reason)

/** Debian's root, as the layers of the archive hold it, but for /usr/local. */
function unpackDebian(root: string): void {
  const archive = join(imageDirectory, 'base.tar')
  if (!existsSync(archive)) throw new Error(`${archive} is missing: run test/node/image/build.sh ${imageDirectory}`)
  const read = (name: string) => execFileSync('tar', ['-xOf', archive, name], { encoding: 'utf8' })
  const [{ Layers: layers }] = JSON.parse(read('manifest.json')) as [{ Layers: string[] }]
  const script =
    'tar -xOf "$1" "$2" | tar -x --directory "$3" --exclude ./usr/local --exclude usr/local --exclude ./dev --exclude dev'
  for (const layer of layers) execFileSync('sh', ['-c', script, 'sh', archive, layer, root])
}

async function suite(): Promise<void> {
  const directory = mkdtempSync(join(workingDirectory, 'executable-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  const root = join(directory, 'root')
  const executable = join(directory, 'holdfast')
  const printed = execFileSync(join(project, 'scripts/executable.sh'), [executable], { encoding: 'utf8' })
  t.comment(printed)
  mkdirSync(root)
  unpackDebian(root)
  for (const name of ['dev', 'usr/local/bin', 'etc/holdfast', 'srv/new', 'srv/objects']) {
    mkdirSync(join(root, name), { recursive: true })
  }
  cpSync(executable, join(root, 'usr/local/bin/holdfast'))
  const inside = (
    mounts: string,
  ) => `root=$1 && shift && mount --rbind /dev "$root/dev" && mount -t proc proc "$root/proc" && ${mounts} &&
    exec chroot "$root" env -i PATH=/usr/local/bin:/usr/bin:/bin "$@"`
  /** The output; `mounts`: a shell's commands in the mount namespace of this run. */
  const run = (words: string, mounts = 'true'): string =>
    execFileSync(
      'unshare',
      ['--mount', '--propagation', 'private', 'sh', '-c', inside(mounts), 'sh', root, ...words.split(' ')],
      { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] },
    )

  await t.test('the executable runs without Node, and prints its version', async (t) => {
    t.throws(() => run('node --version'), /No such file/)
    const { version } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as { version: string }
    t.equal(run('holdfast --version'), `${version}\n`)
    t.match(printed, /holdfast \S+ in Node v\S+, \d+ MB\nstart until the version is printed: \d+ ms/)
  })

  await t.test('the executable publishes a directory, and leaves nothing in /tmp', async (t) => {
    writeFileSync(join(root, 'srv/new/tls.crt'), 'certificate')
    const before = readdirSync(join(root, 'tmp'))
    const replace = 'holdfast replace /srv/certs --from /srv/new'
    t.match(run(replace), /^created \/srv\/certs sha256:/)
    t.equal(readFileSync(join(root, 'srv/certs/tls.crt'), 'utf8'), 'certificate')
    t.same(readdirSync(join(root, 'tmp')), before)
    writeFileSync(join(root, 'srv/new/tls.key'), 'key')
    t.match(run(replace, 'mount -t tmpfs -o noexec none "$root/tmp"'), /^replaced /, 'where /tmp may not execute')
    const nowhere = `for place in tmp var/tmp run dev/shm; do mount -t tmpfs -o noexec none "$root/$place"; done &&
      mount --bind "$root/usr/local/bin" "$root/usr/local/bin" && mount -o remount,bind,ro "$root/usr/local/bin"`
    t.throws(
      () => run(replace, nowhere),
      /set TMPDIR to one of root's or yours, on a file system that may execute \(\/tmp: .*var\/lib\/holdfast: ENOENT/,
    )
  })

  await t.test('the executable loads nothing from where another user could put something else', async (t) => {
    for (const [name, uid] of [
      ['theirs', 65534],
      ['ours', 0],
    ] as const) {
      mkdirSync(join(root, 'srv', name, 'tmp'), { recursive: true })
      chownSync(join(root, 'srv', name), uid, uid)
    }
    /** Names that came and went in a TMPDIR while the executable started: each is one that its owner could have exchanged in between. */
    const namesIn = async (temporary: string): Promise<string[]> => {
      const names: string[] = []
      const watcher = watch(join(root, temporary), (_, name) => names.push(name ?? ''))
      t.match(run(`env TMPDIR=/${temporary} holdfast replace /srv/certs --from /srv/new`), /^(unchanged|replaced) /)
      // An event of the watch's own comes after all of the executable's.
      writeFileSync(join(root, temporary, 'last'), '')
      while (!names.includes('last')) await once(watcher, 'change')
      watcher.close()
      return names.filter((name) => name !== 'last')
    }
    t.strictSame(await namesIn('srv/theirs/tmp'), [], 'below a directory of another user')
    t.matchOnly([...new Set(await namesIn('srv/ours/tmp'))], [/^holdfast-/], "below root's own")
  })

  await t.test('the executable makes a pass of the agent, with a content check on a thread', async (t) => {
    const secret = { kind: 'Secret', apiVersion: 'v1', metadata: { name: 'tls' }, stringData: { 'tls.key': 'key' } }
    writeFileSync(join(root, 'srv/objects/tls.yaml'), JSON.stringify(secret))
    const directory = (path: string, program: string) => ({
      path,
      contents: [{ secret: 'tls' }],
      beforePublish: [{ exec: [program, '-f', '{dir}/tls.key'] }],
    })
    const configuration = {
      apiVersion: 'holdfast.dev/v1alpha1',
      kind: 'AgentConfiguration',
      source: { namespace: 'demo', files: { path: '/srv/objects' } },
      directories: [directory('/srv/accepted', '/usr/bin/test')],
    }
    writeFileSync(join(root, 'etc/holdfast/holdfast.yaml'), JSON.stringify(configuration))
    const sync = 'holdfast sync --config /etc/holdfast/holdfast.yaml'
    t.match(run(sync), /^created {2}\/srv\/accepted /)
    t.equal(readFileSync(join(root, 'srv/accepted/tls.key'), 'utf8'), 'key')
    const refusing = { ...configuration, directories: [directory('/srv/refused', '/usr/bin/false')] }
    writeFileSync(join(root, 'etc/holdfast/holdfast.yaml'), JSON.stringify(refusing))
    t.throws(() => run(sync), /ContentRejected/)
    t.notOk(existsSync(join(root, 'srv/refused')))
  })
}
