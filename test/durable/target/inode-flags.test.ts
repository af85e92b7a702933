/* Attributes of an inode beside mode, owner and ACL: what new content beside a target would not get is refused or told, on real file systems. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { planDirectory, replaceDirectory, replaceFile } from '../../../src/durable/publish/replace.js'
import { addKey, makeEncrypted } from '../fscrypt.js'
import { mounted, noLoop } from '../loop-disk.js'
import { contents, kept } from '../scratch.js'

/** As lsattr(1) has them. */
function letters(path: string): string {
  return execFileSync('lsattr', ['-d', path], { encoding: 'utf8' }).split(' ')[0]?.replaceAll('-', '') ?? ''
}

function listening() {
  const warnings: string[] = []
  const nothing = (): void => undefined
  const warn = (_: object, text: string): void => void warnings.push(text)
  return { log: { debug: nothing, info: nothing, warn, error: nothing }, warnings }
}

await t.test('an encrypted target', { skip: noLoop('mkfs.ext4', 'lsattr') }, async (t) => {
  const at = mounted(t, ['mkfs.ext4', '-q', '-O', 'encrypt'], 64)
  let key: Buffer
  try {
    key = addKey(at)
  } catch (error) {
    return void t.pass(`this kernel has no fscrypt: ${String(error)}`)
  }
  const files = { key: 'new' }
  const refusal = {
    reason: 'TargetUnfit',
    code: 'ENOTSUP',
    published: false,
    message: /is encrypted, and new content beside it would not be/,
    advice: /^encrypt .* \(fscrypt encrypt\), or /,
  }

  await t.test('is not replaced in a directory that is not', async (t) => {
    const [target, outer] = [join(at, 'certs'), join(at, 'outer')]
    makeEncrypted(target, key)
    writeFileSync(join(target, 'key'), 'old')
    await t.rejects(replaceDirectory(target, { files }), { ...refusal, path: target })
    await t.rejects(planDirectory({ target, files }), refusal)
    t.strictSame([contents(target), letters(target)], [{ key: 'old' }, 'Ee'])
    mkdirSync(outer)
    makeEncrypted(join(outer, 'below'), key)
    await t.rejects(replaceDirectory(outer, { files }), { ...refusal, path: join(outer, 'below') })
    renameSync(join(target, 'key'), join(at, 'file'))
    await t.rejects(replaceFile(join(at, 'file'), 'new'), { ...refusal, path: join(at, 'file') })
    t.equal(readFileSync(join(at, 'file'), 'utf8'), 'old')
    t.strictSame(kept(at), ['lock', 'lock', 'lock'])
  })

  await t.test('stays so in a directory that is, and in the symlink form without a history', async (t) => {
    const parent = join(at, 'parent')
    makeEncrypted(parent, key)
    const target = join(parent, 'certs')
    for (const text of ['first', 'second', 'third']) {
      await replaceDirectory(target, { files: { key: text }, history: { keep: 1, maxAge: null } })
      t.match(letters(join(target, 'key')), /E/)
    }
    const linked = join(at, 'linked')
    makeEncrypted(linked, key)
    for (const text of ['first', 'second']) await replaceDirectory(linked, { files: { key: text }, publish: 'symlink' })
    const [generation = ''] = readdirSync(linked).filter((name) => /^\.\.[^d]/.test(name))
    t.match(letters(join(linked, generation, 'key')), /E/)
    const kept = { files, publish: 'symlink', history: { keep: 1, maxAge: null } } as const
    await t.rejects(replaceDirectory(linked, kept), refusal, 'earlier content is copied beside it')
    t.equal(readFileSync(join(linked, 'key'), 'utf8'), 'second')
  })
})

await t.test('what new content loses of the old is told', { skip: noLoop('mkfs.ext4', 'chattr') }, async (t) => {
  const target = join(mounted(t, ['mkfs.ext4', '-q'], 16), 'certs')
  const { log, warnings } = listening()
  // Not every kernel has fs-verity.
  class Verified extends NodeFileSystem {
    override async attributes(...args: Parameters<NodeFileSystem['attributes']>) {
      const found = await super.attributes(...args)
      return found.type === 'file' && found.size === 3 ? { ...found, flags: found.flags | 0x100000 } : found
    }
  }
  const publish = async (key: string, fs?: NodeFileSystem) => {
    await replaceDirectory(target, { files: { key, plain: key }, log }, fs)
    return warnings.splice(0)
  }
  const loses = (what: string): string => `the new content of ${target} is no longer ${what}`
  t.strictSame(await publish('old'), [])
  t.strictSame(await publish('second', new Verified()), [loses('fs-verity (key and plain)')])
  t.strictSame(await publish('newer', new Verified()), [])
  execFileSync('chattr', ['+a', join(target, 'key')])
  const { ino } = statSync(target)
  t.matchOnly(await publish('newest'), [loses('append-only (chattr +a) (key)'), /could not remove|EPERM/])
  execFileSync('find', [dirname(target), '-inum', `${ino}`, '-exec', 'chattr', '-R', '-a', '{}', '+'])
  t.strictSame(await publish('the last'), [])
  t.strictSame(kept(dirname(target)), ['lock', 'record'])
})
