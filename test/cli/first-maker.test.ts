/**
 * A local user makes a target first, open to themselves, or owned it before: with real ACLs, a real other user, and the commands. After the
 * publication that user may neither read the private key nor write beside it.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { replaceFile } from '../../src/index.js'
import { holdfast, Node, scratch } from './holdfast.js'

const stranger = 1000
const key = 'the private key'

/** In that user's name, without any other right. */
function asStranger(script: string, directory: string): { status: number | null; stdout: string } {
  const command = ['--reuid', `${stranger}`, '--regid', `${stranger}`, '--clear-groups', 'sh', '-ec', script]
  return spawnSync('setpriv', command, { cwd: directory, encoding: 'utf8' })
}

const skip =
  (process.geteuid?.() !== 0 || ['setpriv', 'setfacl'].some((tool) => spawnSync(tool, ['--version']).status !== 0)) &&
  'needs root with setpriv and setfacl'

/** Where the stranger may make entries: in a directory for all, as /tmp is, and in their own. */
const parents = [
  ['a sticky directory', 0o1777, 0],
  ["the user's own directory", 0o755, stranger],
] as const

/** What the stranger makes there. */
const file = 'umask 0; echo mine > t; chmod 0666 t; setfacl -m u:1000:rw t'
const directory =
  'umask 0; mkdir t; echo mine > t/tls.key; chmod 0666 t/tls.key; setfacl -m u:1000:rw t/tls.key; setfacl -m u:1000:rwx,d:u:1000:rwx t'
const empty = 'umask 0; mkdir t; setfacl -m u:1000:rwx,d:u:1000:rwx t'

function place(root: string, [, mode, owner]: (typeof parents)[number]): string {
  const path = join(root, 'place')
  // All may go through to it.
  chmodSync(root, 0o755)
  mkdirSync(path)
  chownSync(path, owner, owner)
  chmodSync(path, mode)
  return path
}

/** Tries what the stranger could do before. */
function shutOut(t: Test, at: string, path: string): void {
  t.equal(spawnSync('cat', [path], { cwd: at, encoding: 'utf8' }).stdout, key, 'it is published')
  t.match(asStranger(`cat ${path}`, at), { status: 1, stdout: '' }, 'and the user may not read it')
  t.not(asStranger(`echo x >> ${path}`, at).status, 0, 'nor write it')
  if (path !== 't') t.not(asStranger('touch t/x', at).status, 0, 'nor write beside it')
}

for (const parent of parents) {
  const [where] = parent
  await t.test(`write and the library, over a file that a user made first in ${where}`, { skip }, async (t) => {
    for (const publish of [
      (target: string) => holdfast(['write', target], { input: key }),
      (target: string) => replaceFile(target, key, { owner: { uid: 0, gid: 0 } }),
    ]) {
      const at = place(scratch(t), parent)
      t.equal(asStranger(file, at).status, 0)
      t.equal(asStranger('cat t', at).stdout, 'mine\n')
      const answer = await publish(join(at, 't'))
      if ('stderr' in answer) t.match(answer, { code: 0, stderr: /does not keep ACLs and user attributes of \./ })
      shutOut(t, at, 't')
    }
  })

  await t.test(`replace, over a directory that a user made first in ${where}`, { skip }, async (t) => {
    for (const form of [directory, empty]) {
      const root = scratch(t)
      const at = place(root, parent)
      const from = join(root, 'from')
      mkdirSync(from)
      writeFileSync(join(from, 'tls.key'), key, { mode: 0o600 })
      t.equal(asStranger(form, at).status, 0)
      const answer = await holdfast(['replace', join(at, 't'), '--from', from, '--replace-foreign'])
      t.match(answer, { code: 0, stderr: /does not keep ACLs and user attributes of/ })
      shutOut(t, at, 't/tls.key')
    }
  })

  await t.test(`sync, over a directory that a user made first in ${where}`, { skip }, async (t) => {
    for (const [form, publish] of [
      [directory, 'exchange'],
      [empty, 'exchange'],
      [empty, 'symlink'],
    ] as const) {
      const node = new Node(t, [{ path: 'place/t', publish, fileMode: '0600', contents: [{ secret: 'web' }] }])
      node.put('Secret', 'web', { 'tls.key': key })
      const at = place(node.path('.'), parent)
      t.equal(asStranger(form, at).status, 0)
      const answer = await node.run('sync')
      t.match(answer, { code: 0, stderr: /does not keep ACLs and user attributes of/ }, publish)
      shutOut(t, at, 't/tls.key')
      t.match(await node.run('sync'), { code: 0, stdout: /^unchanged/ })
    }
  })
}

await t.test('a former owner, who set an ACL while the file was theirs', { skip }, async (t) => {
  const at = place(scratch(t), parents[0])
  const write = (...args: string[]) => holdfast(['write', join(at, 't'), ...args], { input: key })
  t.match(await write('--owner', '1000:1000'), { code: 0 })
  t.equal(asStranger('setfacl -m u:1000:rw t; cat t', at).stdout, key)
  t.match(await write(), { code: 0, stderr: /does not keep ACLs and user attributes of \.: another user owned that/ })
  shutOut(t, at, 't')
})
