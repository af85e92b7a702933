/** `check` on real file systems, mounted in a mount namespace that ends with the program. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { needsRoot, Scene } from './scene.js'

const MiB = 1024 * 1024

/** The words that run the program with something mounted on the target's parent: `mount OPTIONS`, then more of a shell script. */
function mounted(scene: Scene, options: string, then = 'true'): string[] {
  const script = `mount ${options} '${scene.parent}' && ${then} && exec "$@"`
  return ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', script, 'sh']
}

function image(scene: Scene, mkfs: readonly string[], size: number): string {
  const file = scene.path('image')
  writeFileSync(file, '')
  truncateSync(file, size)
  const [program = '', ...args] = mkfs
  execFileSync(program, [...args, file], { stdio: 'ignore' })
  return file
}

const has = (program: string): boolean => spawnSync(program, ['-V'], { stdio: 'ignore' }).error === undefined

interface Case {
  readonly name: string
  readonly mkfs: readonly string[]
  readonly size: number
  readonly options?: string
  readonly proven: boolean
  readonly type: RegExp
  readonly flushes: RegExp
  readonly advice?: RegExp
}

const loop = /is a loop device over .*\/image: its flushes are only as good as those of the file system/
const cases: Case[] = [
  {
    name: 'ext4',
    mkfs: ['mkfs.ext4', '-q'],
    size: 32 * MiB,
    proven: true,
    type: /^ext4 with its journal: durability is proven$/,
    flushes: loop,
  },
  {
    name: 'ext4 without a journal',
    mkfs: ['mkfs.ext4', '-q', '-O', '^has_journal'],
    size: 32 * MiB,
    proven: false,
    type: /^ext4 without a journal: durability is not proven/,
    flushes: loop,
  },
  {
    name: 'ext4 with inodes of 128 bytes',
    mkfs: ['mkfs.ext4', '-q', '-I', '128'],
    size: 32 * MiB,
    proven: false,
    type: /^ext4 whose inodes have no time of birth: durability is not proven/,
    flushes: loop,
    advice: /^tune2fs -l \/dev\/loop\d+ \| grep 'Inode size' says 128: make it anew with mkfs.ext4 -I 256, or put/,
  },
  {
    name: 'ext4 without barriers',
    mkfs: ['mkfs.ext4', '-q'],
    size: 32 * MiB,
    options: ',nobarrier',
    proven: false,
    type: /^ext4 with nobarrier: durability is not proven/,
    flushes: /^the mount option nobarrier turns them off/,
  },
  {
    name: 'xfs',
    mkfs: ['mkfs.xfs', '-q'],
    size: 320 * MiB,
    proven: true,
    type: /^xfs: durability is proven$/,
    flushes: loop,
  },
  {
    name: 'btrfs',
    mkfs: ['mkfs.btrfs', '-q'],
    size: 128 * MiB,
    proven: true,
    type: /^btrfs: durability is proven$/,
    flushes: loop,
  },
]

for (const { name, mkfs, size, options = '', proven, type, flushes, advice = /^/ } of cases) {
  const skip = needsRoot || (has(mkfs[0] ?? '') ? false : `needs ${mkfs[0] ?? ''}`)
  await t.test(name, { skip }, async (t) => {
    const scene = new Scene(t)
    const file = image(scene, mkfs, size)
    const under = mounted(scene, `-o loop${options} '${file}'`)
    const checked = await scene.check(t, { under })
    t.match(checked.one('file system'), { status: proven ? 'OK' : 'WARN', found: type })
    t.match(checked.one('file system').advice ?? '', advice)
    t.match(checked.one('mount'), { status: 'OK', found: new RegExp(`^/dev/loop\\d+ on ${scene.parent}$`) })
    t.match(checked.one('flushes'), { status: 'WARN', found: flushes })
    t.match(checked.one('exchange'), { status: 'OK', found: /changed places in one step/ })
    t.match(checked.one('space'), { status: 'OK', found: /MiB free$/ })
    t.equal(checked.one('inodes').status, 'OK')
    const kernel = checked.one('kernel', 'this process')
    t.match(kernel.found, name === 'btrfs' ? /CVE-2025-71183/ : /^Linux [\d.]+\S*$/)
    t.same(checked.with('FAULT'), [])
    const strict = await scene.check(t, { under }, ['--require-proven'])
    t.equal(strict.one('file system').status, proven ? 'OK' : 'FAULT')
  })
}

const kept = `test -z "$(ls -A parent)"`

await t.test('check leaves nothing beside the target', { skip: needsRoot }, async (t) => {
  const scene = new Scene(t)
  // The namespace would take its mount away: looked at from inside, after the program.
  const script = `mount -t tmpfs tmpfs '${scene.parent}' && "$@" > '${scene.path('out')}' && cd '${scene.root}' && ${kept} && echo nothing`
  const under = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', script, 'sh']
  const { code, stdout, stderr } = await scene.run('check', [], { under })
  t.same([code, stdout], [0, 'nothing\n'], stderr)
})

await t.test('check warns of tmpfs: in memory, small, with few inodes', { skip: needsRoot }, async (t) => {
  const scene = new Scene(t)
  const checked = await scene.check(t, {
    under: mounted(scene, '-t tmpfs -o size=1m,nr_inodes=64 tmpfs'),
  })
  t.match(checked.one('file system'), { status: 'WARN', found: /^tmpfs: durability is not proven/ })
  t.same(checked.all('flushes'), [], 'there is nothing to flush to')
  t.match(checked.one('space'), { status: 'WARN', found: /^1\.0 MiB free$/ })
  t.match(checked.one('inodes'), { status: 'WARN', found: /^\d\d free$/ })
  t.equal(checked.one('exchange').status, 'OK')
})

await t.test('check finds that a full file system takes no directory', { skip: needsRoot }, async (t) => {
  const scene = new Scene(t)
  const under = mounted(scene, '-t tmpfs -o nr_inodes=2 tmpfs', `mkdir '${scene.target}'`)
  const checked = await scene.check(t, { under })
  t.match(checked.one('exchange'), {
    status: 'FAULT',
    found: /could not create a directory beside the target: mkdir .*: ENOSPC$/,
    advice: /free up space or inodes/,
  })
  t.match(checked.one('inodes'), {
    status: 'FAULT',
    found: /^0 free; the target takes 1, and the next publication needs as much again/,
  })
})

await t.test('check finds a read-only file system', { skip: needsRoot }, async (t) => {
  const scene = new Scene(t)
  const checked = await scene.check(t, { under: mounted(scene, '-t tmpfs -o ro tmpfs') })
  t.match(checked.one('mount'), { status: 'FAULT', found: /read-only$/, advice: /kernel log/ })
  t.match(checked.one('exchange'), { status: 'FAULT', found: /EROFS/ })
})

for (const [name, option, status, flushes] of [
  ['overlay', '', 'WARN', undefined],
  ['overlay, volatile', ',volatile', 'WARN', /option volatile: the kernel never syncs it/],
] as const) {
  await t.test(name, { skip: needsRoot }, async (t) => {
    const scene = new Scene(t)
    for (const directory of ['lower', 'layers']) mkdirSync(scene.path(directory))
    const layers = scene.path('layers')
    const upper = `lowerdir=${scene.path('lower')},upperdir=${layers}/u,workdir=${layers}/w${option}`
    const script = `mount -t tmpfs tmpfs '${layers}' && mkdir '${layers}/u' '${layers}/w' && mount -t overlay -o '${upper}' overlay '${scene.parent}' && exec "$@"`
    const under = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', script, 'sh']
    const checked = await scene.check(t, { under })
    t.match(checked.one('file system'), { status, found: /^overlay: durability is not proven/ })
    t.match(checked.all('flushes'), flushes === undefined ? [] : [{ status: 'WARN', found: flushes }])
    t.equal(checked.all('flushes').length, flushes === undefined ? 0 : 1)
    t.equal(checked.one('exchange').status, 'OK')
  })
}

await t.test('check refuses a btrfs subvolume as the target', { skip: needsRoot || !has('mkfs.btrfs') }, async (t) => {
  const scene = new Scene(t)
  const file = image(scene, ['mkfs.btrfs', '-q'], 128 * MiB)
  const make = `btrfs subvolume create '${scene.target}' > /dev/null`
  const checked = await scene.check(t, { under: mounted(scene, `-o loop '${file}'`, make) })
  t.match(checked.one('target'), {
    status: 'FAULT',
    found: /is not on the same device as its parent \(as the root of a btrfs subvolume is\)/,
    advice: 'name a directory inside it',
  })
})

await t.test('check calls a disk by its name', { skip: needsRoot }, async (t) => {
  const scene = new Scene(t)
  const checked = await scene.check(t)
  const [mount, [flushes]] = [checked.one('mount'), checked.all('flushes')]
  if (!mount.found.startsWith('/dev/') || flushes === undefined) {
    t.comment(`the scratch directory is on no disk: ${mount.found}`)
    return
  }
  t.match(flushes.found, /write back cache|write through|loop device/)
})
