/** What the target has of its file system, and new content beside it would not get. */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { addKey, makeEncrypted } from '../durable/fscrypt.js'
import { mounted, noLoop } from '../durable/loop-disk.js'
import { Scene } from './scene.js'

/** A target on a new file system, which `set` makes. */
function sceneOn(t: Test, at: string, set: (target: string) => void): Scene {
  const target = join(at, 'certs')
  set(target)
  const scene = new Scene(t)
  scene.configure([{ path: target, adopt: 'replace', contents: [{ secret: 'serving-cert' }] }])
  return scene
}

await t.test('chattr +C on btrfs', { skip: noLoop('mkfs.btrfs', 'chattr') }, async (t) => {
  const at = mounted(t, ['mkfs.btrfs', '-q'], 128)
  const scene = sceneOn(t, at, (target) => {
    mkdirSync(target)
    execFileSync('chattr', ['+C', target])
  })
  t.match((await scene.check(t)).one('attributes', join(at, 'certs')), {
    status: 'WARN',
    found: `${at}/certs has chattr +C: new content gets what its parent passes on, and not this`,
    advice: 'set it on the parent, or do without',
  })
  execFileSync('chattr', ['+C', at])
  t.strictSame((await scene.check(t)).all('attributes', join(at, 'certs')), [])
  t.equal((await scene.run('sync')).code, 0)
  t.match(execFileSync('lsattr', [join(at, 'certs')], { encoding: 'utf8' }), /C/)
  t.strictSame((await scene.check(t)).all('attributes', join(at, 'certs')), [])
})

await t.test('a project on xfs', { skip: noLoop('mkfs.xfs', 'chattr') }, async (t) => {
  const at = mounted(t, ['mkfs.xfs', '-q'], 320)
  const scene = sceneOn(t, at, (target) => {
    mkdirSync(target)
    execFileSync('chattr', ['-p', '5', target])
  })
  t.match((await scene.check(t)).one('attributes', join(at, 'certs')), {
    status: 'WARN',
    found: /certs has project 5, and not 0: /,
    advice: 'set it on the parent (chattr +P -p 5), or do without',
  })
  execFileSync('chattr', ['+P', '-p', '5', at])
  t.strictSame((await scene.check(t)).all('attributes', join(at, 'certs')), [])
  t.equal((await scene.run('sync')).code, 0)
  t.match(execFileSync('lsattr', ['-dp', join(at, 'certs')], { encoding: 'utf8' }), /^ *5 /)
})

await t.test('an encrypted target', { skip: noLoop('mkfs.ext4', 'chattr') }, async (t) => {
  const at = mounted(t, ['mkfs.ext4', '-q', '-O', 'encrypt'], 64)
  let key: Buffer
  try {
    key = addKey(at)
  } catch (error) {
    return void t.pass(`this kernel has no fscrypt: ${String(error)}`)
  }
  const scene = sceneOn(t, at, (target) => {
    makeEncrypted(target, key)
    writeFileSync(join(target, 'tls.crt'), 'old')
  })
  const words = /certs is encrypted, and new content beside it would not be/
  t.match((await scene.check(t)).one('target', join(at, 'certs')), {
    status: 'FAULT',
    found: words,
    advice: /fscrypt encrypt/,
  })
  const { code, stdout, stderr } = await scene.run('sync')
  t.equal(code, 1)
  t.match(stdout + stderr, words)
})

await t.test('check warns of an ACL that opens a private file', async (t) => {
  const scene = new Scene(t)
  t.equal((await scene.run('sync')).code, 0)
  t.strictSame((await scene.check(t)).all('acl'), [])
  const file = join(scene.target, 'tls.crt')
  if (spawnSync('setfacl', ['-m', 'u:1000:r', file]).status !== 0) {
    t.comment('no setfacl, or a file system without ACLs')
    return
  }
  t.match((await scene.check(t)).one('acl'), {
    status: 'WARN',
    found: 'an ACL opens files that their mode keeps private: tls.crt (user:1000:r--)',
    advice: new RegExp(`setfacl -b, as of ${file}$`),
  })
  t.equal((await scene.run('verify')).code, 0, 'its mask is no drift of the mode')
  chmodSync(file, 0o644)
  t.strictSame((await scene.check(t)).all('acl'), [], 'a file that is open anyway')
})
