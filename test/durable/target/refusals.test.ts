import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { clock } from '../../../src/clock.js'
import { DirectoryPublication } from '../../../src/durable/publish/directory-publication.js'
import { publish } from '../../../src/durable/publish/publish.js'
import {
  readPublication,
  readPublishedFiles,
  replaceDirectories as publishDirectories,
} from '../../../src/durable/index.js'
import { DurableWriteError, replaceDirectories, replaceDirectory, replaceFile } from '../../../src/index.js'
import type { Mount, RenameMode } from '../../../src/durable/file-system.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { holdOf, refuseForeign, refuseOtherPublisher, renameError } from '../../../src/durable/target/refusals.js'
import { failing, failure, intercepted } from '../intercepted.js'
import { contents, kept, scratch, scratchWith } from '../scratch.js'
import { planFor } from '../plan.js'

const isRoot = process.geteuid?.() === 0

await t.test('malformed requests are reported before anything is touched', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  const bad: [Parameters<typeof planFor>, RegExp][] = [
    [[target, { files: { '': 'x' } }], /^files: a path is empty$/],
    [[target, { files: { '.': 'x' } }], /^files: "\." has the part "\."; leave it out$/],
    [[target, { files: { '..': 'x' } }], /has the part "\.\."/],
    [[target, { files: { 'a/../b': 'x' } }], /^files: "a\/\.\.\/b" has the part "\.\."/],
    [[target, { files: { 'a//b': 'x' } }], /has the part ""/],
    [[target, { files: { '/etc/passwd': 'x' } }], /starts or ends with a slash/],
    [[target, { files: { 'a/': 'x' } }], /starts or ends with a slash/],
    [[target, { files: { 'a\0b': 'x' } }], /holds a NUL byte/],
    [[target, { files: { a: 'x', 'a/b': 'y' } }], /^files: "a" is both a file and a directory$/],
    [[target, { files: { ['x'.repeat(256)]: '' } }], /longer than 255 bytes/],
    [
      [target, { files: { a: 5 as unknown as string } }],
      /\["a"\] must be a string, a Uint8Array, \{ path \}, a stream, or/,
    ],
    [[target, { files: { a: { content: 'x', mode: 0o10000 } } }], /^files\["a"\]\.mode must be an integer/],
    [[target, { files: {}, mode: -1 }], /^mode must be an integer from 0 to 0o7777, not -1$/],
    [[target, { files: {}, mode: Number.NaN }], /^mode must be/],
    [[target, { files: {}, fileMode: 1.5 }], /^fileMode must be/],
    [[target, { files: {}, owner: { uid: -1, gid: 0 } }], /^owner\.uid must be/],
    [[target, { files: {}, owner: { uid: 0, gid: 2 ** 32 - 1 } }], /^owner\.gid must be/],
    [['', { files: {} }], /^the path is empty$/],
    [['/', { files: {} }], /root directory cannot be replaced|must end in a name/],
    [['a\0b', { files: {} }], /NUL byte/],
    [
      [join(target, '..'), { files: {} }].map((value, index) => (index === 0 ? `${target}/..` : value)) as Parameters<
        typeof planFor
      >,
      /must end in a name, not in "\.\."/,
    ],
    [[`${parent}/${'x'.repeat(256)}`, { files: {} }], /longer than 255 bytes/],
  ]
  for (const [[path, options], message] of bad) {
    await t.rejects(replaceDirectory(path, options), { message }, String(message))
  }
  t.same(readdirSync(parent), [])
})

await t.test('a publication changes no target that it cannot replace', async (t) => {
  const parent = scratch(t)
  mkdirSync(join(parent, 'real'))
  writeFileSync(join(parent, 'real', 'mine'), 'keep')
  symlinkSync('real', join(parent, 'link'))
  writeFileSync(join(parent, 'file'), 'keep')
  mkdirSync(join(parent, 'world'))
  chmodSync(join(parent, 'world'), 0o777)
  const cases: [string, string, RegExp][] = [
    [join(parent, 'link'), 'ELOOP', /is a symbolic link, which a publication would replace/],
    [join(parent, 'file'), 'ENOTDIR', /is not a directory/],
    [join(parent, 'file', 'below'), 'ENOTDIR', /is not a directory/],
    [join(parent, 'world', 'x'), 'EPERM', /everybody may write to .*not sticky.*chmod o-w/],
  ]
  for (const [target, code, message] of cases) {
    const [result] = await replaceDirectories([{ target, files: { a: 'x' } }])
    t.match(result, { error: { code, message, published: false, reason: 'TargetUnfit' } }, target)
  }
  t.same(contents(parent), { file: 'keep', 'real/mine': 'keep' })
  t.equal(readlinkSync(join(parent, 'link')), 'real')
  for (const [path, code] of [
    ['link', 'ELOOP'],
    ['real', 'EISDIR'],
  ] as const) {
    await t.rejects(replaceFile(join(parent, path), 'x'), { code, published: false })
  }
})

await t.test('links in the path: followed where root and this user alone could have made them', async (t) => {
  const parent = scratch(t)
  mkdirSync(join(parent, 'real'))
  symlinkSync('real', join(parent, 'link'))
  t.match(await replaceDirectory(join(parent, 'link/deep/certs'), { files: { a: '1' } }), {
    outcome: 'created',
  })
  t.same(contents(join(parent, 'real/deep/certs')), { a: '1' })
  chmodSync(parent, 0o1777)
  const [result] = await replaceDirectories([{ target: join(parent, 'link/certs'), files: { a: '1' } }])
  t.match(result, { error: { code: 'ELOOP', message: /does not follow the symbolic link/ } })
  chmodSync(parent, 0o700)
  symlinkSync('loop', join(parent, 'loop'))
  const [loop] = await replaceDirectories([{ target: join(parent, 'loop/certs'), files: {} }])
  t.match(loop, { error: { code: 'ELOOP' } })
})

await t.test('a mount point', { skip: isRoot ? false : 'mounting needs root: run by CI' }, async (t) => {
  const parent = scratch(t)
  mkdirSync(join(parent, 'mounted'))
  writeFileSync(join(parent, 'mounted', 'mine'), 'keep')
  execFileSync('mount', ['--bind', join(parent, 'mounted'), join(parent, 'mounted')])
  t.teardown(() => execFileSync('umount', [join(parent, 'mounted')]))
  const [result] = await replaceDirectories([{ target: join(parent, 'mounted'), files: { a: '' } }])
  t.match(result, { error: { code: 'EBUSY', message: /is a mount point/, published: false } })
  t.same(contents(join(parent, 'mounted')), { mine: 'keep' })

  const covered = join(parent, 'covered')
  await replaceDirectory(covered, { files: { a: '' } })
  execFileSync('mount', ['--bind', join(parent, 'mounted'), covered])
  t.teardown(() => execFileSync('umount', [covered]))
  const refusal = {
    reason: 'TargetUnfit',
    code: 'EBUSY',
    message: /covered is a mount point; nothing was changed; name/,
  }
  await t.rejects(readPublication(covered), refusal, 'whoever looks at what was published says so, too')
  await t.rejects(readPublishedFiles(covered, ['a']), refusal)
})

await t.test(
  'a file that something is mounted on',
  { skip: isRoot ? false : 'mounting needs root: run by CI' },
  async (t) => {
    const [parent, target] = scratchWith(t, 'ca.crt')
    writeFileSync(target, 'old')
    writeFileSync(join(parent, 'other'), 'other')
    execFileSync('mount', ['--bind', join(parent, 'other'), target])
    t.teardown(() => execFileSync('umount', [target]))
    await t.rejects(replaceFile(target, 'new'), {
      code: 'EBUSY',
      reason: 'TargetUnfit',
      published: false,
      message:
        /ca\.crt is a mount point; nothing was changed; mount its parent directory instead \(in a pod: no subPath\)/,
    })
    t.same(readFileSync(target, 'utf8'), 'other')
  },
)

await t.test(
  'a directory of an overlay’s lower layer',
  { skip: isRoot ? false : 'mounting needs root: run by CI' },
  async (t) => {
    const parent = scratch(t)
    for (const name of ['lower', 'upper', 'work', 'merged', 'lower/certs']) mkdirSync(join(parent, name))
    writeFileSync(join(parent, 'lower/certs/a'), 'old')
    const layers = ['lower', 'upper', 'work'].map((name) => `${name}dir=${join(parent, name)}`).join(',')
    execFileSync('mount', ['-t', 'overlay', 'overlay', '-o', `${layers},redirect_dir=off`, join(parent, 'merged')])
    t.teardown(() => execFileSync('umount', [join(parent, 'merged')]))
    // The kernel gives the IDs of mounts that are gone to new ones: what holdfast knows of this one may be a second old.
    const real = { ...clock }
    clock.now = () => real.now() + 2_000
    t.teardown(() => Object.assign(clock, real))
    const target = join(parent, 'merged/certs')
    await t.rejects(replaceDirectory(target, { files: { a: 'new' } }), {
      code: 'EXDEV',
      reason: 'TargetUnfit',
      published: false,
      message:
        /certs is in a lower layer of an overlay.*left .*certs as it was; mount a directory of the host at its parent/,
    })
    t.same(contents(target), { a: 'old' })
  },
)

await t.test('a file system without RENAME_EXCHANGE is reported as such, with what to do', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  await replaceDirectory(target, { files: { a: 'old' } })
  const { fs } = failing('rename', 'EINVAL', 'renameat2')
  const [result] = await publish([new DirectoryPublication(fs, planFor(target, { files: { a: 'new' } }), {})])
  t.match(result, {
    error: {
      code: 'EINVAL',
      reason: 'TargetUnfit',
      published: false,
      message: /cannot exchange two names in one step \(RENAME_EXCHANGE\).*put .*certs on ext4, xfs or btrfs/,
    },
  })
  t.same(contents(target), { a: 'old' })
  t.same(kept(parent), ['lock', 'record'])
})

await t.test('foreign directories: left alone unless all their names are among the new', async (t) => {
  const parent = scratch(t)
  const target = join(parent, 'theirs')
  mkdirSync(target)
  writeFileSync(join(target, 'theirs'), 'keep')
  const request = { target, files: { a: '1' }, foreign: 'same-names' as const }
  t.match(await publishDirectories([request]), [
    {
      error: {
        reason: 'TargetForeign',
        message: /holds files that the new content does not have \(theirs\).*--replace-foreign/,
      },
    },
  ])
  t.same(contents(target), { theirs: 'keep' })
  t.match(await publishDirectories([{ ...request, files: { theirs: 'new', a: '1' } }]), [{ outcome: 'replaced' }])
  t.match(await publishDirectories([request]), [{ outcome: 'replaced' }], 'now it is ours')
  t.type(new DurableWriteError('x', { code: 'EIO', syscall: 'fsync', path: '/' }), Error)
})

await t.test('requireProven', async (t) => {
  const { fs } = intercepted(() => undefined)
  const target = join(scratch(t), 'certs')
  const unproven = Object.create(fs, {
    mount: { value: () => Promise.resolve({ id: 1, type: 'tmpfs', proven: false }) },
  }) as typeof fs
  const plan = planFor(target, { files: { a: '' } })
  const [refused] = await publish([new DirectoryPublication(unproven, plan, { requireProven: true })])
  t.match(refused, {
    error: { code: 'ENOTSUP', reason: 'TargetUnfit', message: /is on tmpfs, where durability is not proven/ },
  })
  t.match(await publish([new DirectoryPublication(unproven, plan, {})]), [{ outcome: 'created', unproven: true }])
})

await t.test('a rename that fails is explained by its errno, its mode and the file system', async (t) => {
  const onto = (type: string): Mount => ({
    id: 1,
    type,
    device: '8:1',
    root: '/',
    mountPoint: '/',
    proven: true,
    lasting: true,
  })
  const created = /^another program created \/srv\/certs meanwhile; holdfast left \/srv\/certs as it was$/
  const lower = /^\/srv\/certs is in a lower layer of an overlay, .*; mount a directory of the host at its parent/
  const exchange =
    /^a file system of type nfs4 cannot exchange two names in one step \(RENAME_EXCHANGE\); .*; put .* on/
  const noreplace = /^a file system of type nfs4 cannot rename without replacing \(RENAME_NOREPLACE\); .*; put .* on/
  const asItIs = /^renameat2: E[A-Z]+$/
  const cases: [string, string, RenameMode, RegExp][] = [
    ['EEXIST', 'ext4', 'noreplace', created],
    ['EEXIST', 'ext4', 'exchange', asItIs],
    ['EXDEV', 'overlay', 'exchange', lower],
    ['EXDEV', 'overlay', 'noreplace', asItIs],
    ['EXDEV', 'ext4', 'exchange', asItIs],
    ['EIO', 'overlay', 'exchange', asItIs],
    ['EINVAL', 'nfs4', 'exchange', exchange],
    ['ENOSYS', 'ext4', 'exchange', asItIs],
    ['EINVAL', 'nfs4', 'noreplace', noreplace],
    ['ENOSYS', 'ext4', 'noreplace', asItIs],
    ['EINVAL', 'nfs4', 'replace', asItIs],
    ['ENOSYS', 'nfs4', 'replace', asItIs],
  ]
  for (const [code, type, mode, message] of cases) {
    const error = renameError('/srv/certs', onto(type), mode, failure(code, 'renameat2'))
    t.match(error, { message, code }, `${code} ${type} ${mode}`)
  }
})

await t.test('a hold is in force until its end', async (t) => {
  const record = { hold: { reason: 'held', since: 1, until: 10 } } as never
  t.match(holdOf({ record }, 5), { reason: 'held' })
  t.equal(holdOf({ record }, 10), undefined)
  t.equal(holdOf({ record: {} as never }, 5), undefined, 'it was released')
  t.equal(holdOf({ record: undefined }, 5), undefined)
})

await t.test(
  'the refusal of each of two publishers says how to give the target up; an unknown one refuses nothing',
  async (t) => {
    const refused = (newest: object | undefined, publisher?: 'agent' | 'install') => () =>
      refuseOtherPublisher('/srv/certs', namesFor('certs'), publisher, { newest: newest as never })
    t.doesNotThrow(refused(undefined, 'agent'))
    t.doesNotThrow(refused({ sequence: 3 }, 'agent'))
    t.doesNotThrow(refused({ sequence: 3, publisher: 'install' }))
    t.doesNotThrow(refused({ sequence: 3, publisher: 'agent' }, 'agent'))
    const record = `/srv/${namesFor('certs').record(3)}`
    t.throws(refused({ sequence: 3, publisher: 'install' }, 'agent'), {
      message:
        'holdfast install published /srv/certs, and holdfast agent is now asked to publish it too; holdfast left /srv/certs as it was; ' +
        `leave it out of the agent's configuration; to hand it over, leave out --cert-dir and the flags of its objects, and remove its record ${record}`,
    })
  },
)

const tree = (...paths: string[]) => ({ entries: paths.map((path) => ({ path })) }) as never

await t.test("the refusal names three of another program's files", async (t) => {
  const named = (...paths: string[]) => {
    try {
      refuseForeign('/srv/certs', tree('', 'a'), { tree: tree('', 'a', ...paths), recorded: false } as never)
    } catch (error) {
      return /\((.*?)\)/.exec((error as Error).message)?.[1]
    }
    return undefined
  }
  t.equal(named(), undefined)
  t.equal(named('b'), 'b')
  t.equal(named('b', 'c', 'd'), 'b, c, d')
  t.equal(named('b', 'c', 'd', 'e'), 'b, c, d, …')
})

await t.test('what to do about a foreign directory is in the words of who asked', async (t) => {
  for (const [publisher, advice] of [
    [undefined, /give --replace-foreign/],
    ['agent', /set adopt: replace/],
    ['install', /; move it away$/],
    ['rollout', /; move it away$/],
  ] as const) {
    const found = { tree: tree('', 'a', 'b'), recorded: false } as never
    t.throws(() => refuseForeign('/srv/certs', tree('', 'a'), found, publisher), { message: advice })
  }
})
