import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readDataDirectory } from '../../src/durable/path/data-directory.js'
import { takeOver } from '../../src/durable/adopt/adoption.js'
import { replaceDirectories, replaceDirectory } from '../../src/durable/index.js'
import { namesFor } from '../../src/durable/path/names.js'
import { letGo } from '../../src/durable/operator/hold.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { directoryPublication } from '../../src/durable/publish/replace.js'
import { publish } from '../../src/durable/publish/publish.js'
import { codeOf } from '../../src/errors.js'
import { failure, intercepted } from './intercepted.js'
import { contents, kept, modeOf, scratch, scratchWith } from './scratch.js'

const real = new NodeFileSystem()
const form = { publish: 'symlink' as const }
const isRoot = process.getuid?.() === 0

await t.test('the form of kubelet’s volumes: the directory stays, links lead through ..data', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  t.match(await replaceDirectory(target, { ...form, files: { a: '1', gone: '1', 'sub/b': '1' } }), {
    outcome: 'created',
  })
  const inode = lstatSync(target).ino
  t.match(await replaceDirectory(target, { ...form, files: { a: '2', 'sub/b': '2', new: '2' } }), {
    outcome: 'replaced',
  })
  t.equal(lstatSync(target).ino, inode)
  t.equal(readlinkSync(join(target, 'a')), '..data/a')
  t.match(readlinkSync(join(target, '..data')), /^\.\.2-[0-9a-f]{16}$/)
  t.same(
    readdirSync(target)
      .filter((name) => !name.startsWith('..'))
      .sort(),
    ['a', 'new', 'sub'],
  )
  t.equal(readdirSync(target).length, 5, 'one generation')
  t.same(contents(join(target, readlinkSync(join(target, '..data')))), { a: '2', 'sub/b': '2', new: '2' })
  t.match(await replaceDirectory(target, { ...form, files: { a: '2', 'sub/b': '2', new: '2' } }), {
    outcome: 'unchanged',
  })
  t.same(kept(parent), ['lock', 'record'])
})

await t.test('a publication answers with its outcome', async (t) => {
  const target = join(scratch(t), 'certs')
  for (const [files, expected] of [
    [{ a: '1', 'sub/b': '2' }, 'created'],
    [{ a: '1', 'sub/b': '3' }, 'replaced'],
  ] as const) {
    const answered = replaceDirectory(target, { ...form, files })
    t.ok(await answered.then(({ outcome }) => outcome === expected).catch(() => false), expected)
  }
})

await t.test('drift of every part of the form is repaired', async (t) => {
  const target = join(scratch(t), 'certs')
  const request = { ...form, files: { a: '1', 'sub/b': '2' } }
  await replaceDirectory(target, request)
  const drifts: [string, () => void][] = [
    ['..data is gone', () => rmSync(join(target, '..data'))],
    [
      '..data leads nowhere',
      () => {
        rmSync(join(target, '..data'))
        symlinkSync('..99-0123456789abcdef', join(target, '..data'))
      },
    ],
    ['the generation is gone', () => rmSync(join(target, readlinkSync(join(target, '..data'))), { recursive: true })],
    ['a link is gone', () => rmSync(join(target, 'a'))],
    ['a stray generation', () => mkdirSync(join(target, '..7-0123456789abcdef'))],
    ['a stray ..data_tmp', () => symlinkSync('x', join(target, '..data_tmp'))],
    ['the mode of the target', () => chmodSync(target, 0o700)],
    [
      'another link in the place of one',
      () => {
        rmSync(join(target, 'a'))
        symlinkSync('..data/b', join(target, 'b'))
      },
    ],
    ...(isRoot
      ? [
          ['the user of the target', () => chownSync(target, 1, 0)] as [string, () => void],
          ['the group of the target', () => chownSync(target, 0, 1)] as [string, () => void],
        ]
      : []),
    ['content', () => writeFileSync(join(target, '..data', 'a'), 'edited')],
  ]
  for (const [what, drift] of drifts) {
    drift()
    t.match(await replaceDirectory(target, request), { outcome: 'replaced' }, what)
    t.match(await replaceDirectory(target, request), { outcome: 'unchanged' }, what)
    t.equal(readdirSync(target).length, 4, what)
    t.equal(modeOf(target), '755')
  }
})

await t.test('changing the form of a target that exists is refused, also while it is broken', async (t) => {
  const parent = scratch(t)
  const linked = join(parent, 'linked')
  const plain = join(parent, 'plain')
  await replaceDirectory(linked, { ...form, files: { a: '1' } })
  await replaceDirectory(plain, { files: { a: '1' } })
  for (const breakIt of [false, true]) {
    if (breakIt) rmSync(join(linked, '..data'))
    t.match(
      await replaceDirectories([
        { target: linked, files: { a: '2' } },
        { target: plain, files: { a: '2' }, ...form },
      ]),
      [{ error: { reason: 'TargetUnfit', published: false } }, { error: { reason: 'TargetUnfit', published: false } }],
    )
  }
  t.same(contents(plain), { a: '1' })
  rmSync(plain, { recursive: true })
  t.match(await replaceDirectory(plain, { files: { a: '2' }, ...form }), { outcome: 'created' }, 'not once it is gone')
})

await t.test('a publication fills an existing empty directory in place: a consumer may have mounted it', async (t) => {
  const target = join(scratch(t), 'mounted')
  mkdirSync(target)
  const inode = lstatSync(target).ino
  t.match(await replaceDirectory(target, { ...form, files: { a: '1' } }), { outcome: 'replaced' })
  t.equal(lstatSync(target).ino, inode)
})

await t.test('a publication refuses names that another entry has, and names of the form', async (t) => {
  const target = join(scratch(t), 'certs')
  await replaceDirectory(target, { ...form, files: { a: '1' } })
  writeFileSync(join(target, 'theirs'), 'keep')
  const [result] = await replaceDirectories([{ target, ...form, files: { theirs: '' } }])
  t.match(result, { error: { reason: 'TargetForeign', message: /theirs is not a link that holdfast made/ } })
  await t.rejects(replaceDirectory(target, { ...form, files: { '..data': '' } }), { name: 'TypeError' })
  t.equal(contents(target)['theirs'], 'keep')
})

await t.test('links that a failed flush has lost are not called durable', async (t) => {
  const target = join(scratch(t), 'certs')
  await replaceDirectory(target, { ...form, files: { a: '1' } })
  let syncs = 0
  const { fs } = intercepted((call) => {
    if (call === 'sync') syncs += 1
    // Barrier 1, barrier 2, the links: the journal is aborted from then on, and the fsync has answered 0.
    if (syncs === 3 && call === 'createFile') throw failure('EROFS', 'open')
  })
  t.match(await publish([directoryPublication(fs, { target, ...form, files: { a: '1', added: '' } })]), [
    { error: { published: true, reason: 'DurabilityUnknown' } },
  ])
})

/** Calls from the rename of `..data` on, in which new content becomes visible. */
async function callsSince(target: string, files: Record<string, string>, more: object = {}): Promise<string[]> {
  const calls: string[] = []
  const { fs } = intercepted((call, args) => {
    if (calls.length > 0 || (call === 'rename' && args.includes('..data'))) calls.push(call)
  })
  t.match(await publish([directoryPublication(fs, { target, ...form, files, ...more })]), [{ outcome: 'replaced' }])
  return calls
}

await t.test('what changes in the directory itself is synced behind it, all at once', async (t) => {
  const target = join(scratch(t), 'certs')
  await replaceDirectory(target, { ...form, files: { a: '1' } })
  const syncs = (calls: readonly string[]): number => calls.filter((call) => call === 'sync').length
  const same = await callsSince(target, { a: '2' })
  const added = await callsSince(target, { a: '3', b: '3' })
  const removed = await callsSince(target, { b: '4' })
  const mode = await callsSince(target, { b: '5' }, { mode: 0o700 })
  for (const calls of [added, removed, mode]) t.equal(syncs(calls), syncs(same))
  for (const calls of [same, added, removed, mode])
    t.ok(calls.indexOf('removeDirectory') < calls.lastIndexOf('sync'), 'the old content, too')
  t.ok(added.lastIndexOf('createLink') < added.lastIndexOf('sync'))
  t.ok(removed.indexOf('removeFile') < removed.lastIndexOf('sync'))
  t.ok(mode.indexOf('setMode') < mode.lastIndexOf('sync'), mode.join())
  t.not(mode.indexOf('setMode'), -1)
})

await t.test(
  'a publication accepts a link of the requested owner',
  { skip: isRoot ? false : 'needs root' },
  async (t) => {
    const target = join(scratch(t), 'certs')
    const owner = { uid: 1, gid: 2 }
    await replaceDirectory(target, { ...form, owner, files: { a: '1' } })
    await replaceDirectory(target, { ...form, owner, files: { a: '1', b: '1' } })
    for (const name of ['..data', 'a', 'b']) t.match(lstatSync(join(target, name)), owner, name)
  },
)

await t.test('a directory that holds no more than a link of a killed publication is filled', async (t) => {
  const target = join(scratch(t), 'certs')
  mkdirSync(target)
  symlinkSync('x', join(target, '..data_tmp'))
  t.match(await replaceDirectory(target, { ...form, files: { a: '1' } }), { outcome: 'replaced' })
})

await t.test('the link cannot be renamed, or another program renames another one over it', async (t) => {
  const target = join(scratch(t), 'certs')
  const [data, theirs] = [join(target, '..data'), '..9-0123456789abcdef']
  await replaceDirectory(target, { ...form, files: { a: '1' } })
  const before = readdirSync(target)
  const failing = intercepted((call, args) => {
    if (call === 'rename' && args.includes('..data')) throw failure('EIO', 'renameat2')
  })
  const request = { target, ...form, files: { a: '2' } }
  t.match(await publish([directoryPublication(failing.fs, request)]), [{ error: { code: 'EIO', published: false } }])
  t.same(readdirSync(target), before, 'nothing of it is left')
  let isRenamed = false
  const { fs } = intercepted((call, args) => {
    if (isRenamed) {
      isRenamed = false
      rmSync(data)
      symlinkSync(theirs, data)
    }
    isRenamed = call === 'rename' && args.includes('..data')
  })
  t.match(await publish([directoryPublication(fs, request)]), [
    { error: { reason: 'TargetForeign', message: /another program replaced .*certs\/\.\.data meanwhile/ } },
  ])
  t.equal(readlinkSync(data), theirs)
})

await t.test(
  'a publication makes a link anew that goes meanwhile, and keeps no copy of the content behind it',
  async (t) => {
    const [parent, target] = scratchWith(t, 'certs')
    const history = { keep: 2, maxAge: null }
    await replaceDirectory(target, { ...form, history, files: { a: '1' } })
    const { fs } = intercepted((call, [, name]) => {
      if (call === 'createDirectory' && String(name).startsWith('..')) rmSync(join(target, '..data'))
    })
    const outcomes = await publish([directoryPublication(fs, { target, ...form, history, files: { a: '2' } })])
    t.match(outcomes, [{ outcome: 'replaced' }])
    t.same(contents(join(target, readlinkSync(join(target, '..data')))), { a: '2' })
    t.same(kept(parent), ['lock', 'record'])
  },
)

await t.test(
  'an agent that takes a changed target over keeps a copy of it; one that finds no record, or a publication by hand, does not',
  async (t) => {
    for (const [publisher, wasLetGo] of [
      ['agent', true],
      [undefined, true],
      ['agent', false],
    ] as const) {
      const parent = scratch(t)
      const target = join(parent, 'certs')
      const request = { target, ...form, agent: 'one', ...(wasLetGo && { adopt: takeOver({ replace: true }) }) }
      await publish([directoryPublication(real, { ...request, publisher: 'agent', files: { a: '1' } })])
      if (wasLetGo) t.ok(await letGo(real, target, { agent: 'one' }))
      else rmSync(join(parent, namesFor('certs').record(1)))
      for (const name of ['a', 'b']) writeFileSync(join(target, '..data', name), 'theirs')
      const taken = directoryPublication(real, { ...request, ...(publisher && { publisher }), files: { a: '2' } })
      t.match(await publish([taken]), [{ outcome: 'replaced' }])
      t.same(contents(join(target, '..data')), { a: '2' })
      const [copy = ''] = readdirSync(parent).filter((name) => name.includes('.0-'))
      const theirs = { 'certs/a': 'theirs', 'certs/b': 'theirs' }
      t.same(copy === '' ? {} : contents(join(parent, copy)), publisher && wasLetGo ? theirs : {})
    }
  },
)

await t.test('a failed first publication removes its stage', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  let failed = 0
  const { fs } = intercepted((call, [, name]) => {
    if (call === 'openDirectory' && /^\.holdfast-/.test(String(name)) && failed++ === 0) throw failure('EIO', 'openat2')
  })
  t.match(await publish([directoryPublication(fs, { target, ...form, files: { a: '1' } })]), [
    { error: { code: 'EIO' } },
  ])
  t.same(kept(parent), ['lock'])
})

await t.test('readGeneration answers undefined for a missing generation, and ENOTDIR for a file', async (t) => {
  const parent = scratch(t)
  const generation = `..1-${'0'.repeat(16)}`
  symlinkSync(generation, join(parent, '..data'))
  const { fs } = intercepted(() => undefined)
  const target = await fs.openPath(parent)
  t.ok((await readDataDirectory(fs, target, false).catch(codeOf)) === undefined, 'gone')
  writeFileSync(join(parent, generation), '')
  t.ok((await readDataDirectory(fs, target, false).catch(codeOf)) === 'ENOTDIR', 'a file')
  await fs.close(target)
})
