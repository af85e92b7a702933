/** Owner, mode and ACL of each entry are those of the new directory, on every way of a rollout; labels are those of the live one. */
import { execFileSync } from 'node:child_process'
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { failure, intercepted } from '../../durable/intercepted.js'
import { type OpenedDirectory, readMounted } from '../../../src/mounted-volume.js'
import { readAttributes, readLocalTree, unreadable } from '../../../src/static-pods/install/local-tree.js'
import { RolledNode, type Answer } from './rolled-node.js'

// Disks of tests may have much to do.

const ready: Answer = () => 'ready'
const never: Answer = () => 'not-ready'

/** Runs an administrator's commands in a directory. */
const typed = (directory: string, lines: string): string =>
  execFileSync('sh', ['-euc', lines], { cwd: directory, encoding: 'utf8' })

/** Owner, group, mode and ACLs of all that is in a directory. Where there is a mask, getfacl does not show the bits of the mode. */
const attributesOf = (path: string): string[] =>
  typed(path, 'getfacl --recursive --numeric --physical . && find . -printf "\\n%P %m %U:%G\\n"').split('\n\n').sort()

const labelled = (type: string): string => `security.selinux="system_u:object_r:${type}:s0"`

/** A live directory that hands down its group, and whose lists and modes are no part of what comes. */
const live = `
chown 5:5 etcd; chmod 0777 etcd; chmod 0600 etcd/ca.crt
chown 6:6 ca.crt; chmod 0666 ca.crt; setfacl -m u:77:rw ca.crt
chown 7:8 .; chmod 2775 .; setfacl -m d:u:77:rwx .
label() { setfattr -n security.selinux -v system_u:object_r:$1:s0 $2; }
label pki_t .; label ca_t ca.crt; label etcd_t etcd; label etcd_ca_t etcd/ca.crt
setfattr -n user.owner -v ops etcd/ca.crt
setfattr -n user.owner -v stranger ca.crt`

/** A new directory with one entry for each thing that can go wrong; of "listed", the list says more of the group than its mask lets through. */
const next = `
mkdir private etcd shared shared/empty
for file in private/sa.key etcd/ca.crt shared/runs shared/listed shared/closed; do echo $file >$file; done
give() { chown $2 $3; chmod $1 $3; }
give 0644 2000:3000 ca.crt; give 0640 2001:3001 sa.key
give 0400 2001:3001 private/sa.key; give 0700 2001:3001 private
give 0444 0:0 etcd/ca.crt; give 1710 2002:0 etcd
give 6755 2003:3003 shared/runs; give 0000 2003:3003 shared/closed
give 0640 2003:3003 shared/listed; setfacl -m u:1000:r,g::rw,m::r shared/listed
give 0711 2004:3004 shared/empty
give 2770 2003:3003 shared; setfacl -m g:1001:rx,d:g:1001:rwx,d:o::- shared
give 0750 2000:3000 .; setfacl -m u:1002:x .`

function withMask(t: Test, mask: number): void {
  const before = process.umask(mask)
  t.teardown(() => process.umask(before))
}

function scene(t: Test) {
  const node = new RolledNode(t)
  typed(node.pki, live)
  const before = attributesOf(node.pki)
  const root = node.staged()
  typed(root, next)
  // An entry made beside the live directory inherits from this one.
  typed(node.root, 'chown 9:9 .; chmod 2755 .; setfacl -m d:u:78:rwx .')
  return { node, root, before, wanted: attributesOf(root), found: () => attributesOf(node.pki) }
}

const skip = process.getuid?.() !== 0 && 'it needs root'

await t.test('a rollout gives each entry its own mode, under every umask', { skip }, async (t) => {
  for (const mask of [0o000, 0o077, 0o777]) {
    await t.test(mask.toString(8), async (t) => {
      const { node, wanted, found } = scene(t)
      const request = await node.request({ tree: true })
      withMask(t, mask)
      t.match(await node.rollout(request, ready), { outcome: 'ready' })
      t.strictSame(found(), wanted)
      t.match(await node.rollout(request, never), { outcome: 'unchanged' })
    })
  }
})

await t.test(
  'a rollout keeps the labels of the live directory by path, and the user attributes that root has set',
  { skip },
  async (t) => {
    const { node } = scene(t)
    t.match(await node.rollout(await node.request({ tree: true }), ready), { outcome: 'ready' })
    const paths = ['', 'ca.crt', 'sa.key', 'etcd', 'etcd/ca.crt', 'private/sa.key'].map((path) => join(node.pki, path))
    const shown = typed(node.root, `getfattr --absolute-names -d -m 'security|user' ${paths.join(' ')}`)
    const found = paths.map((path) => shown.split('\n\n').find((text) => text.startsWith(`# file: ${path}\n`)))
    const types = ['pki_t', 'ca_t', 'pki_t', 'etcd_t', 'etcd_ca_t', 'pki_t']
    const more = ['', '', '', '', '\nuser.owner="ops"', '']
    t.strictSame(
      found,
      paths.map((path, index) => `# file: ${path}\n${labelled(types[index] ?? '')}${more[index]}`),
    )
  },
)

await t.test('an interrupted rollout ends with the same attributes, forth and back', { skip }, async (t) => {
  // A pod that is never ready is watched for all of its time.
  for (const [answer, timeout] of [
    [ready, 60_000],
    [never, 3_000],
  ] as const) {
    const { node, before, wanted, found } = scene(t)
    const stop = new AbortController()
    const stopped: Answer = () => {
      stop.abort(new Error('SIGTERM'))
      return 'not-ready'
    }
    await t.rejects(
      node.rollout(await node.request({ tree: true, timeout }), stopped, { signal: stop.signal }),
      /SIGTERM/,
    )
    t.strictSame(found(), wanted)
    withMask(t, 0o777)
    const { outcome } = await node.resume((pod, image) => (answer === ready ? 'ready' : answer(pod, image)))
    t.strictSame([outcome, found()], answer === ready ? ['ready', wanted] : ['taken-back', before])
  }
})

await t.test('a rollout carries a difference of one owner, one mode or one list alone', { skip }, async (t) => {
  const { node, root, found } = scene(t)
  const rolled = async () => (await node.rollout(await node.request({ tree: true }), ready)).outcome
  t.equal(await rolled(), 'ready')
  for (const change of [
    'chown 2001:3002 private',
    'chmod 1711 shared/empty',
    'setfacl -m u:1000:rw shared/listed; setfacl -k shared',
  ]) {
    typed(root, change)
    t.equal(await rolled(), 'ready', change)
    t.strictSame(found(), attributesOf(root))
    t.equal(await rolled(), 'unchanged', change)
  }
})

await t.test(
  "a rollout without a live directory takes the new one's attributes, and inherits none",
  { skip },
  async (t) => {
    const { node, wanted, found } = scene(t)
    rmSync(node.pki, { recursive: true })
    t.match(await node.rollout(await node.request({ tree: true }), ready), { outcome: 'ready' })
    t.strictSame(found(), wanted)
    t.equal(statSync(node.pki).gid, 3000)
  },
)

await t.test('a rollout fails where it cannot set an owner or a list, and changes nothing', { skip }, async (t) => {
  for (const [at, code, message] of [
    ['setOwner', 'EPERM', /could not stage .*pki: fchown .*pki: EPERM; holdfast left .*pki as it was/],
    [
      'setExtendedAttribute',
      'ENOTSUP',
      /could not keep the (default )?ACL of .*\/pki.*: fsetxattr: ENOTSUP; holdfast left .*pki.* as it was/,
    ],
  ] as const) {
    const { node, before, found } = scene(t)
    const { fs } = intercepted((call, [, name, value]) => {
      const gives = call === 'setOwner' || (/posix_acl/.test(String(name)) && value !== undefined)
      if (call === at && gives) throw failure(code, at === 'setOwner' ? 'fchown' : 'fsetxattr')
    })
    await t.rejects(node.rollout(await node.request({ tree: true }), ready, { fs }), {
      code,
      published: false,
      message,
    })
    t.strictSame([found(), node.versions()], [before, { web: '1' }])
    t.match(await node.resume(ready), { outcome: 'taken-back' })
    t.strictSame(node.left(), [])
  }
})

await t.test('a rollout names an entry of the new directory whose attributes it may not read', { skip }, async (t) => {
  const { root } = scene(t)
  const { fs } = intercepted((call, [path]) => {
    if (call === 'openContent' && String(path).endsWith('private')) throw failure('EACCES', 'open')
  })
  const read = async (directory: OpenedDirectory) => readAttributes(directory, await readLocalTree(directory), fs)
  await t.rejects(
    readMounted(root, read, unreadable),
    /^--resources: .*pki.new\/private is not readable \(open: EACCES\)/,
  )
})
