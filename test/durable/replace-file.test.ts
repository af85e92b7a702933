/** Requests for a file and a directory: refusals before any write, and the defaults. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { tryLock } from '../../native/index.js'
import type { FileSystem } from '../../src/durable/file-system.js'
import { namesFor } from '../../src/durable/path/names.js'
import { desiredEntries, filePublication, planFile, replaceFile } from '../../src/durable/publish/replace.js'
import { publish } from '../../src/durable/publish/publish.js'
import type { OfferedContent, PublicationOptions, ReplaceFileOptions } from '../../src/durable/types.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { failure, intercepted } from './intercepted.js'
import { contents, kept, modeOf, scratch, scratchWith } from './scratch.js'

const real = new NodeFileSystem()

/** The outcome, or the refusal. A defect says no more than that it is one. */
async function write(
  path: string,
  content: string,
  options: ReplaceFileOptions & PublicationOptions = {},
  fs: FileSystem = real,
) {
  const [outcome] = await publish([filePublication(fs, path, content, options)])
  if (outcome === undefined || !('error' in outcome)) return outcome?.outcome
  const { code, problem } = outcome.error
  return code === 'ENOTRECOVERABLE' ? 'a defect' : `${code}: ${problem}`
}

await t.test('replaceFile makes a file for its owner alone, the present user', async (t) => {
  const path = join(scratch(t), 'pod.yaml')
  t.equal(await write(path, '1'), 'created')
  t.equal(modeOf(path), '600')
  t.equal(statSync(path).uid, process.geteuid?.())
  t.equal(await write(path, '1'), 'unchanged')
  t.equal(await write(path, '2', { mode: 0o644 }), 'replaced')
  t.strictSame([readFileSync(path, 'utf8'), modeOf(path)], ['2', '644'])
})

await t.test('replaceFile sets the mode that a request with an owner leaves out', async (t) => {
  const path = join(scratch(t), 'pod.yaml')
  await write(path, '1', { mode: 0o644 })
  const { uid, gid } = statSync(path)
  t.equal(await write(path, '2', { owner: { uid, gid } }), 'replaced')
  t.equal(modeOf(path), '600', 'its default')
  await write(path, '3', { mode: 0o644 })
  await write(path, '4', { owner: { uid, gid }, attributes: 'keepMode' })
  t.equal(modeOf(path), '644', 'that of the file, where the request keeps it')
})

await t.test('replaceFile and a plan of it refuse all but a regular file', async (t) => {
  const root = scratch(t)
  const at = (name: string) => join(root, name)
  mkdirSync(at('directory'))
  symlinkSync('nowhere', at('link'))
  spawnSync('mkfifo', [at('pipe')])
  const refused = {
    directory: `EISDIR: ${at('directory')} is a directory`,
    link: `ELOOP: ${at('link')} is a symbolic link`,
    pipe: `EINVAL: ${at('pipe')} is not a regular file`,
  }
  for (const [name, said] of Object.entries(refused)) {
    t.equal(await write(at(name), ''), said)
    const [code = '', problem] = said.split(': ')
    await t.rejects(planFile(at(name), undefined, {}), { code, problem, published: false })
  }
  await t.resolves(planFile(at('new'), undefined, {}))
  t.strictSame(kept(root), [], 'and no lock is made')
  const lock = openSync(at(namesFor('new').lock), 'w')
  t.ok(tryLock(lock))
  await t.rejects(
    planFile(at('new'), 'x', { lockTimeout: 0 }),
    { code: 'EAGAIN', reason: 'Busy' },
    'as the call would now',
  )
  await t.resolves(planFile(at('new'), undefined, { lockTimeout: 0 }), 'the lock may be free once the content is there')
  closeSync(lock)
})

await t.test('a request refuses its content by digests, or by size, before anything is made', async (t) => {
  const [root, source, old] = scratchWith(t, 'source', 'old')
  writeFileSync(source, 'x')
  await write(old, 'old')
  const before = contents(root)
  const refuse = (isIt: boolean): void => {
    if (isIt) throw new Error('not this')
  }
  const digest = createHash('sha256').update('x').digest('hex')
  const bySize = ({ bytes }: OfferedContent) => {
    refuse(bytes === 1)
    return Promise.resolve()
  }
  const byDigest = async ({ entries }: OfferedContent) => {
    refuse((await entries())[0]?.sha256 === digest)
  }
  for (const accept of [bySize, byDigest]) {
    for (const path of [old, join(root, 'new')]) {
      await t.rejects(replaceFile(path, { path: source }, { accept }), {
        cause: { message: 'not this' },
        published: false,
      })
    }
  }
  t.same(contents(root), before)
})

await t.test('what takes the place of the file once it is locked is refused in the same words', async (t) => {
  const [root, path] = scratchWith(t, 'pod.yaml')
  writeFileSync(path, 'old')
  let looks = 0
  const { fs } = intercepted((call, [, name]) => {
    if (call !== 'look' || name !== 'pod.yaml' || ++looks !== 2) return
    rmSync(path)
    mkdirSync(path)
  })
  t.equal(await write(path, 'new', {}, fs), `EISDIR: ${path} is a directory`)
  t.strictSame(kept(root), ['lock'])
})

await t.test('replaceFile refuses a mount point, and an unreadable file', async (t) => {
  const path = join(scratch(t), 'pod.yaml')
  writeFileSync(path, 'old')
  const failing = (code: string) =>
    intercepted((call, [, name]) => {
      if (call === 'openFile' && name === 'pod.yaml') throw failure(code, 'openat2')
    }).fs
  t.equal(await write(path, 'new', {}, failing('EXDEV')), `EBUSY: ${path} is a mount point`)
  t.match(await write(path, 'new', {}, failing('EACCES')), /^EACCES: .*openat2/)
})

await t.test('a path that names no file is refused, by its first fault', async (t) => {
  const refusal = (path: string, options: ReplaceFileOptions = {}): unknown => {
    try {
      return filePublication(real, path, '', options)
    } catch (error) {
      return error instanceof TypeError || error instanceof RangeError ? error.message : error
    }
  }
  t.equal(refusal('/'), 'the root directory cannot be replaced')
  t.equal(refusal('/srv/pod/', { mode: -1 }), '"/srv/pod/" ends with a slash: name a file')
  t.equal(refusal('/srv/pod', { mode: -1 }), 'mode must be an integer from 0 to 0o7777, not -1')
})

await t.test('what a directory would hold: as asked for, or with the modes that are there', async (t) => {
  const target = join(scratch(t), 'certs')
  const request = { target, files: { a: '1', 'sub/b': '2' }, mode: 0o750 }
  const { uid, gid } = real.user
  const there = [
    { type: 'directory', path: '', mode: 0o711, uid, gid, sha256: '' },
    { type: 'file', path: 'a', mode: 0o444, uid, gid, sha256: 'of other bytes' },
  ] as const
  const modes = async (attributes: 'set' | 'keep') =>
    Object.fromEntries((await desiredEntries({ ...request, attributes }, there)).map(({ path, mode }) => [path, mode]))
  t.strictSame(await modes('set'), { '': 0o750, a: 0o600, sub: 0o750, 'sub/b': 0o600 })
  t.strictSame(await modes('keep'), { '': 0o711, a: 0o444, sub: 0o711, 'sub/b': 0o600 })
})
