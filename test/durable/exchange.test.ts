/**
 * A directory in the form `exchange`: which content a publication takes over, which it keeps and for how long, and which it never deletes.
 */
import type { DirectoryPublicationOptions } from '../../src/durable/publish/request.js'
import { spawnSync } from 'node:child_process'
import {
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { takeOver } from '../../src/durable/adopt/adoption.js'
import type { FileSystem } from '../../src/durable/file-system.js'
import { readHistory } from '../../src/durable/look/read-history.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { publish } from '../../src/durable/publish/publish.js'
import type { DirectoryRequest } from '../../src/durable/types.js'
import { withRecord } from '../../src/durable/record/record-files.js'
import { directoryPublication } from '../../src/durable/publish/replace.js'
import { silent } from '../../src/log.js'
import { Alone } from './adoption-scene.js'
import { failing, failure, intercepted } from './intercepted.js'
import { Observed, stagingIn } from './relocation-story.js'
import { contents, kept, scratchWith } from './scratch.js'

const isRoot = process.getuid?.() === 0

function scene(t: Test) {
  const [root, target] = scratchWith(t, 'certs')
  const lines: string[] = []
  const add = (_: object, message: string): void => void lines.push(message)
  const log = { ...silent, info: add, warn: add }
  const publishOne = async (
    files: DirectoryRequest['files'],
    options: DirectoryPublicationOptions,
    fs: FileSystem,
  ): Promise<string | undefined> => {
    lines.length = 0
    const [outcome] = await publish([directoryPublication(fs, { target, files, log, ...options })])
    if (outcome === undefined || !('error' in outcome)) return outcome?.outcome
    const { code, problem } = outcome.error
    return code === 'ENOTRECOVERABLE' ? 'a defect' : `${code}: ${problem}`
  }
  /** The outcome, or the refusal. A defect says no more than that it is one. */
  const replace = (
    files: DirectoryRequest['files'],
    options: DirectoryPublicationOptions = {},
    fs: FileSystem = new NodeFileSystem(),
  ) => publishOne(files, options, fs).catch(() => 'a defect')
  const recorded = () => withRecord(new NodeFileSystem(), target, (_, __, [newest]) => Promise.resolve(newest))
  return { root, target, lines, replace, recorded }
}

await t.test('a link ..data is the form symlink; a file of that name is a file', async (t) => {
  const { target, replace } = scene(t)
  t.equal(await replace({ '..data': '1' }), 'created')
  t.equal(await replace({ '..data': '2', a: '' }), 'replaced')
  t.strictSame(contents(target), { '..data': '2', a: '' })
  symlinkSync('a', join(target, 'link'))
  t.equal(await replace({ a: '3' }), 'replaced', 'nor is any other link')
  symlinkSync('a', join(target, '..data'))
  t.equal(await replace({ a: '4' }), `EEXIST: ${target} was published with publish: symlink`)
})

await t.test(
  'a publication takes over and keeps a single foreign entry, and takes over no empty directory',
  async (t) => {
    const adopt = { adopt: takeOver({ replace: true }) }
    const kind = async (there: Record<string, string>) => {
      const { target, lines, replace } = scene(t)
      mkdirSync(target)
      for (const [path, text] of Object.entries(there)) writeFileSync(join(target, path), text, { mode: 0o600 })
      const outcome = await replace({ a: 'new' }, adopt, new Alone())
      const past = ((await readHistory(new NodeFileSystem(), target)) ?? []).map(({ why }) => why)
      const told = [...lines]
      t.equal(await replace({ a: 'newer' }, adopt, new Alone()), 'replaced')
      return [outcome, past, told.map((line) => line.replace(target, 'TARGET')), [...lines]]
    }
    t.equal(await scene(t).replace({ a: 'new' }, adopt, new Alone()), 'created')
    const told = 'holdfast has taken over TARGET, and keeps what it held as the content 0'
    t.strictSame(await kind({}), ['replaced', ['published'], [], []])
    t.strictSame(await kind({ a: 'old' }), ['replaced', ['published', 'adopted'], [told], []])
  },
)

await t.test('the record names what an old content held, where no other record does', async (t) => {
  const { target, replace, recorded } = scene(t)
  const named = async () => (await recorded())?.staging?.entries?.map(({ path }) => path)
  t.equal(await replace({ a: '1' }), 'created')
  t.equal((await recorded())?.staging, undefined, 'nothing is taken out')
  t.equal(await replace({ a: '2' }), 'replaced')
  t.match((await recorded())?.staging, { name: /^\.holdfast-/ })
  t.equal(await named(), undefined)
  writeFileSync(join(target, 'b'), 'edited')
  t.equal(await replace({ a: '3' }), 'replaced')
  t.strictSame(await named(), ['', 'a', 'b'])
})

await t.test('a publication keeps old content in use for an hour by default', async (t) => {
  const { root, target, lines, replace, recorded } = scene(t)
  const fs = new Observed()
  const retire = { retireTimeout: 3_600_000 }
  t.equal(await replace({ a: '1', 'sub/b': '1' }, retire, fs), 'created')
  fs.user1 = 'process 7 works in it'
  t.equal(await replace({ a: '2' }, retire, fs), 'replaced')
  const until = fs.time + 3_600_000
  const staging = stagingIn(root)
  t.strictSame(contents(join(root, staging)), { a: '1', 'sub/b': '1' })
  const { staging: out, retired } = (await recorded()) ?? {}
  const entries = out?.entries
  t.strictSame(
    entries?.map(({ path }) => path),
    ['', 'a', 'sub', 'sub/b'],
  )
  t.strictSame(retired, [{ name: staging, inode: out?.old, until, entries }])
  const end = new Date(until).toISOString()
  t.strictSame(lines, [
    `the old content of ${target} stays until nobody uses it, or until ${end}: process 7 works in it`,
  ])
  fs.user1 = undefined
  t.equal(await replace({ a: '3' }, { ...retire, retireTimeout: 1 }, fs), 'replaced')
  t.strictSame(kept(root), ['lock', 'record'])
})

await t.test(
  'after the exchange is durable, a mutation asks the journal: the first removal, or a new file',
  async (t) => {
    const { replace } = scene(t)
    const mutation = async (
      files: Record<string, string>,
      options?: DirectoryPublicationOptions,
    ): Promise<string | undefined> => {
      const calls: string[] = []
      const { fs } = intercepted((call) => calls.push(call))
      t.match(await replace(files, options, fs), /^(created|replaced)$/)
      return calls.slice(calls.lastIndexOf('rename')).find((call) => /^(create|remove)/.test(call))
    }
    t.equal(await mutation({}), 'createFile', 'nothing was there')
    t.equal(await mutation({ a: '1' }), 'createFile', 'it was empty')
    t.equal(await mutation({ a: '2' }), 'removeFile')
    t.equal(await mutation({ a: '3' }, { retireTimeout: 3_600_000 }), 'createFile', 'it may be in use')
  },
)

await t.test('old content in which another program has mounted something stays whole', async (t) => {
  const { root, target, lines, replace } = scene(t)
  mkdirSync(target)
  writeFileSync(join(target, 'theirs'), '', { mode: 0o600 })
  mkdirSync(join(target, 'sub'))
  class Mounted extends Alone {
    exchanged = false
    override async rename(...args: Parameters<NodeFileSystem['rename']>): Promise<void> {
      await super.rename(...args)
      this.exchanged ||= args[3] === 'certs'
    }
    override mountsBelow(): Promise<string[]> {
      return Promise.resolve(this.exchanged ? ['sub'] : [])
    }
    override removeDirectory(...args: Parameters<NodeFileSystem['removeDirectory']>): Promise<void> {
      // An adoption tries the exchange before, with two directories that it removes again.
      if (this.exchanged) removed.push(args[1])
      return super.removeDirectory(...args)
    }
  }
  const removed: unknown[] = []
  t.equal(await replace({ a: 'new' }, { adopt: takeOver({ replace: true }) }, new Mounted()), 'replaced')
  t.strictSame(removed, [])
  t.strictSame(readdirSync(join(root, stagingIn(root))), ['sub'], 'but for the first file, which asked the journal')
  t.strictSame(lines, ['could not remove the old content; the next run retries'])
})

await t.test('a failure before the exchange leaves neither staged content nor a copy of the old one', async (t) => {
  const { root, target, lines, replace } = scene(t)
  const history = { keep: 1, maxAge: null }
  t.equal(await replace({ a: '1' }, { history }), 'created')
  const { fs } = failing('rename', 'EIO', 'renameat2')
  t.match(await replace({ a: '2' }, { history }, fs), /^EIO: /)
  t.strictSame([contents(target), kept(root), lines], [{ a: '1' }, ['lock', 'record'], []])
})

await t.test('a published program runs as soon as it is visible: no descriptor has it open for writing', async (t) => {
  const { target, replace } = scene(t)
  const ran: unknown[] = []
  let isVisible = false
  const { fs } = intercepted((call) => {
    if (isVisible && call === 'sync') ran.push(spawnSync(join(target, 'program')).error ?? 'it runs')
    isVisible ||= call === 'rename'
  })
  const program = { content: readFileSync(realpathSync('/bin/true')), mode: 0o700 }
  t.equal(await replace({ program }, {}, fs), 'created')
  t.strictSame(ran.slice(0, 1), ['it runs'])
})

await t.test('a name that another program has taken for staging stays his', async (t) => {
  const { root, target, replace } = scene(t)
  t.equal(await replace({ a: '1' }), 'created')
  let theirs = ''
  const { fs } = intercepted((call, [, name]) => {
    if (call !== 'createDirectory' || theirs !== '') return
    theirs = join(root, String(name))
    mkdirSync(theirs)
    writeFileSync(join(theirs, 'file'), 'theirs')
  })
  t.match(await replace({ a: '2' }, {}, fs), /^EEXIST: /)
  t.strictSame([contents(theirs), contents(target)], [{ file: 'theirs' }, { a: '1' }])
})

await t.test('another program that cannot be given back what came out loses nothing of it', async (t) => {
  const { root, target, replace } = scene(t)
  t.equal(await replace({ a: '1' }), 'created')
  let exchanges = 0
  const { fs } = intercepted((call, args) => {
    if (call !== 'rename' || args[4] !== 'exchange') return
    if (++exchanges > 1) throw failure('EIO', 'renameat2')
    renameSync(target, join(root, 'away'))
    mkdirSync(target)
    writeFileSync(join(target, 'theirs'), 'theirs')
  })
  t.match(await replace({ a: '2' }, {}, fs), /^EIO: /)
  t.strictSame(contents(join(root, stagingIn(root))), { theirs: 'theirs' })
})

await t.test('what comes into the place of the target once it is locked is refused in the same words', async (t) => {
  const comes: Record<string, [(path: string) => void, string]> = {
    'a file': [(path) => writeFileSync(path, 'theirs'), 'ENOTDIR: TARGET is not a directory'],
    'a link': [
      (path) => symlinkSync('/theirs', path),
      'ELOOP: TARGET is a symbolic link, which a publication would replace',
    ],
  }
  for (const [what, [put, said]] of Object.entries(comes)) {
    const { root, target, replace } = scene(t)
    t.equal(await replace({ a: '1' }), 'created')
    const { fs } = intercepted((call, [, name]) => {
      if (call !== 'openDirectory' || name !== 'certs') return
      rmSync(target, { recursive: true, force: true })
      put(target)
    })
    t.equal((await replace({ a: '2' }, {}, fs))?.replace(target, 'TARGET'), said, what)
    t.strictSame(kept(root), ['lock', 'record'])
  }
})

await t.test('a publication changes nothing at a target that it cannot open', async (t) => {
  const { root, target, replace } = scene(t)
  t.equal(await replace({ a: '1' }), 'created')
  const opening = (code: string) =>
    intercepted((call, [, name]) => {
      if (call === 'openDirectory' && name === 'certs') throw failure(code, 'openat2')
    }).fs
  t.equal(await replace({ a: '2' }, {}, opening('EXDEV')), `EBUSY: ${target} is a mount point`)
  t.match(await replace({ a: '2' }, {}, opening('EACCES')), /^EACCES: could not prepare the publication of /)
  t.strictSame([contents(target), kept(root)], [{ a: '1' }, ['lock', 'record']])
})

await t.test(
  'with attributes keep, another user may own a directory that a publication takes over',
  { skip: !isRoot && 'needs root' },
  async (t) => {
    const { target, replace } = scene(t)
    mkdirSync(target)
    writeFileSync(join(target, 'a'), 'old')
    for (const path of [target, join(target, 'a')]) chownSync(path, 1234, 0)
    const adopt = { adopt: takeOver({ replace: true }) }
    t.match(await replace({ a: 'new' }, adopt, new Alone()), /^EEXIST: .* safeOwner: user 1234 owns /)
    t.equal(await replace({ a: 'new' }, { ...adopt, attributes: 'keep' }, new Alone()), 'replaced')
    t.equal(statSync(join(target, 'a')).uid, 1234)
  },
)
