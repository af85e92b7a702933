/** A static pod is restarted by one annotation in its manifest: once for one content, and nothing else of it changes. */
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { DurableCalls } from '../../src/durable/index.js'
import { silent } from '../../src/log.js'
import { contentAnnotation, contentMark, renewStaticPod } from '../../src/static-pods/renew.js'
import { parseManifest } from '../../src/static-pods/pod/manifest.js'
import { rolloutLockPath, writeState } from '../../src/static-pods/rollout/rollout-state.js'
import { until } from '../until.js'
import { scratch } from './pods.js'
import { RolledNode } from './rollout/rolled-node.js'

/** As kubeadm writes it, with a user's comment. */
const etcd = `apiVersion: v1
kind: Pod
metadata:
  annotations:
    kubeadm.kubernetes.io/etcd.advertise-client-urls: https://10.0.0.1:2379
  labels:
    component: etcd
  # keep this name
  name: etcd
  namespace: kube-system
spec:
  containers:
  - command: [etcd, --name=a]
    image: registry.k8s.io/etcd:3.5.0
    name: etcd
  volumes:
  - hostPath: { path: /etc/kubernetes/pki/etcd, type: DirectoryOrCreate }
    name: certs
`

function site(t: Test, manifests: Record<string, string> = { 'etcd.yaml': etcd }) {
  const root = scratch(t)
  const directory = join(root, 'manifests')
  mkdirSync(directory)
  for (const [name, text] of Object.entries(manifests)) writeFileSync(join(directory, name), text, { mode: 0o640 })
  const path = join(directory, 'etcd.yaml')
  const durable = new DurableCalls()
  const renew = (digest: string, more: Partial<Parameters<typeof renewStaticPod>[1]> = {}) =>
    renewStaticPod(durable, {
      pod: 'etcd',
      manifestDirectory: directory,
      lockFile: undefined,
      published: [{ directory: '/etc/certs', digest }],
      lockTimeout: 0,
      signal: new AbortController().signal,
      log: silent,
      ...more,
    })
  const line = (digest: string, of = '/etc/certs') => {
    const key = readFileSync(join(directory, '.holdfast-content-key'))
    return `    "${contentAnnotation(of)}": "${contentMark(key, of, digest)}"\n`
  }
  return { root, directory, path, durable, renew, line, text: () => readFileSync(path, 'utf8') }
}

const withLine = (...lines: string[]) => etcd.replace('    kubeadm', `${lines.join('')}    kubeadm`)

await t.test('renewStaticPod adds one line, and changes it for new content only', async (t) => {
  const { directory, path, renew, line, text } = site(t)
  t.match(contentAnnotation('/etc/certs'), /^holdfast\.dev\/content-[0-9a-f]{16}$/)
  t.equal(await renew('sha256:1'), 'renewed')
  t.equal(text(), withLine(line('sha256:1')))
  t.equal(statSync(path).mode & 0o777, 0o640)
  const key = statSync(join(directory, '.holdfast-content-key'))
  t.strictSame([key.size, key.mode & 0o7777], [32, 0o600])
  const { ino } = statSync(path)
  t.equal(await renew('sha256:1'), 'unchanged')
  t.equal(statSync(path).ino, ino)
  t.equal(await renew('sha256:2'), 'renewed')
  t.equal(text(), withLine(line('sha256:2')))
  const both = { published: ['/etc/certs', '/b'].map((directory) => ({ directory, digest: 'sha256:3' })) }
  t.equal(await renew('', both), 'renewed')
  t.equal(text(), withLine(line('sha256:3', '/b'), line('sha256:3')), 'each directory has a line of its own')
})

await t.test('the annotation tells nothing of the content: each node has a key', async (t) => {
  const [one, other] = [site(t), site(t)]
  await one.renew('sha256:1')
  await other.renew('sha256:1')
  t.notMatch(one.text(), /(?<!hmac-)sha256:1/)
  t.not(one.text(), other.text())
})

await t.test('renewStaticPod gives a pod with a uid another one, for kubelet tells pods by it', async (t) => {
  const { renew, text } = site(t, { 'etcd.yaml': etcd.replace('  name: etcd', '  uid: 7c9c\n  name: etcd') })
  t.equal(await renew('sha256:1'), 'renewed')
  const uid = /^ {2}uid: "([0-9a-f-]{36})"$/m.exec(text())?.[1]
  t.ok(uid)
  t.equal(await renew('sha256:1'), 'unchanged')
  t.ok(text().includes(uid ?? ' '))
})

await t.test('renewStaticPod refuses an ambiguous or unchangeable manifest, and leaves it alone', async (t) => {
  const two = site(t, { 'etcd.yaml': etcd, 'old.yaml': etcd })
  await t.rejects(two.renew('sha256:1'), { message: /etcd\.yaml and .*old\.yaml are both manifests of etcd/ })
  const none = site(t, { 'web.yaml': etcd.replace('name: etcd\n  namespace', 'name: web\n  namespace'), broken: '{' })
  await t.rejects(none.renew('sha256:1'), {
    message: /holds no manifest of a pod with the name etcd \(holdfast cannot read 1 of the files there as pods\)/,
  })
  const gone = join(none.root, 'gone')
  await t.rejects(none.renew('sha256:1', { manifestDirectory: gone }), { message: /gone holds no manifest/ })
  t.strictSame(readdirSync(none.root), ['manifests'], 'nothing is made')
  const text = `x: &a { b: c }\n${etcd.replace(/annotations:\n.*\n/, 'annotations: *a\n')}`
  const alias = site(t, { 'etcd.yaml': text })
  await t.rejects(alias.renew('sha256:1'), { message: /written in a way that holdfast cannot add an annotation to/ })
  t.equal(alias.text(), text)
  const link = site(t, { 'other.txt': etcd })
  rmSync(join(link.directory, 'other.txt'))
  writeFileSync(join(link.root, 'other.txt'), etcd)
  symlinkSync('../other.txt', link.path)
  await t.rejects(link.renew('sha256:1'), { message: /etcd\.yaml, the manifest of etcd, is a symbolic link/ })
  writeFileSync(join(link.directory, 'own.yaml'), etcd)
  await t.rejects(link.renew('sha256:1'), { message: /etcd\.yaml and .*own\.yaml are both manifests of etcd/ })
})

await t.test('renewStaticPod waits for the manifest lock, and gives up in time', async (t) => {
  const { root, durable, renew, text } = site(t)
  const lockFile = join(root, 'manifests.lock')
  const held = await durable.lock(lockFile, 0, undefined)
  await t.rejects(renew('sha256:1', { lockFile }), { reason: 'Busy', message: /the manifest is as it was/ })
  t.equal(text(), etcd)
  const waiting = renew('sha256:1', { lockFile, lockTimeout: 60_000 })
  await held.release()
  t.equal(await waiting, 'renewed')
})

await t.test('renewStaticPod waits for a running rollout, and refuses beside an interrupted one', async (t) => {
  const { directory, durable, renew, text } = site(t)
  const held = await durable.lock(rolloutLockPath(directory), 0, undefined)
  await t.rejects(renew('sha256:1'), { reason: 'Busy', message: /the manifest is as it was/ })
  const waiting = renew('sha256:1', { lockTimeout: 60_000 })
  t.equal(text(), etcd)
  await held.release()
  t.equal(await waiting, 'renewed')
  const renewed = text()
  const state = { request: '', manifests: [], reached: 0, tree: null, since: null, timeout: 1, fallback: true }
  const readiness = { urls: [], authority: null, commands: [], kubelet: null, mirrorPod: null }
  await writeState(directory, { ...state, phase: 'going', manifestLock: null, readiness, message: '' }, durable, silent)
  await t.rejects(renew('sha256:2'), { message: /was interrupted.*holdfast rollout --resume/ })
  t.equal(text(), renewed)
  await writeState(directory, { phase: 'ended', outcome: 'ready', request: '' }, durable, silent)
  t.equal(await renew('sha256:2'), 'renewed')
})

await t.test('renewStaticPod lets no rollout begin while it changes the manifest', async (t) => {
  const { root, directory, durable, renew } = site(t)
  const lockFile = join(root, 'manifests.lock')
  const held = await durable.lock(lockFile, 0, undefined)
  const waiting = renew('sha256:1', { lockFile, lockTimeout: 60_000 })
  const rolloutLock = () => durable.lock(rolloutLockPath(directory), 0, undefined)
  await until('a rollout is kept out', async () => {
    const reason = await rolloutLock().then(
      (lock) => lock.release(),
      (error: unknown) => (error as { reason: string }).reason,
    )
    return reason === 'Busy'
  })
  await held.release()
  t.equal(await waiting, 'renewed')
  await (await rolloutLock()).release()
})

await t.test('a rollout of already live manifests changes nothing after a hook', async (t) => {
  const node = new RolledNode(t)
  const ready = () => 'ready' as const
  t.match(await node.rollout(await node.request(), ready), { outcome: 'ready' })
  const { renew } = site(t)
  const hooked = { pod: 'web', manifestDirectory: node.manifests }
  t.equal(await renew('sha256:1', hooked), 'renewed')
  t.match(await node.rollout(await node.request(), ready), { outcome: 'unchanged' })
  t.equal(await renew('sha256:1', hooked), 'unchanged')
})

await t.test(
  "a rollout of another manifest keeps a hook's annotation; a rollout of another directory does not",
  async (t) => {
    const node = new RolledNode(t)
    const ready = () => 'ready' as const
    const { renew } = site(t)
    const hooked = { pod: 'web', manifestDirectory: node.manifests }
    t.equal(await renew('sha256:1', hooked), 'renewed')
    t.match(await node.rollout(await node.request(), ready), { outcome: 'ready' })
    t.match(readFileSync(node.live(), 'utf8'), /web:2/)
    t.equal(await renew('sha256:1', hooked), 'unchanged', 'it runs with this content: no second restart')
    t.match(await node.rollout(await node.request({ tree: true }), ready), { outcome: 'ready' })
    t.equal(await renew('sha256:1', hooked), 'renewed', 'what the pod reads now, no hook has said')
  },
)

/** kubelet takes the first document, and the last of a field that stands twice; a file of Windows' editors is UTF-16. */
const unusual: Record<string, string | Uint8Array> = {
  'two documents': `${etcd}---\napiVersion: v1\nkind: Pod\nmetadata: { name: other }\n`,
  'a field that stands twice': etcd.replace('kind: Pod\n', 'kind: Pod\nkind: Pod\n'),
  'JSON with metadata twice':
    '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"etcd","annotations":{"a":"b"}},"metadata":{"labels":{"c":"d"}},' +
    '"spec":{"containers":[{"name":"etcd","image":"etcd:1"}]}}',
  'UTF-16': Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(etcd, 'utf16le')]),
}

for (const [name, manifest] of Object.entries(unusual)) {
  await t.test(`renewStaticPod renews a live manifest of ${name}, once`, async (t) => {
    const { path, renew } = site(t)
    writeFileSync(path, manifest)
    t.equal(await renew('sha256:1'), 'renewed')
    const { pod } = await parseManifest(readFileSync(path), path)
    t.match(pod.metadata, { name: 'etcd', annotations: { [contentAnnotation('/etc/certs')]: String } })
    t.equal(await renew('sha256:1'), 'unchanged')
    t.equal(await renew('sha256:2'), 'renewed')
  })
}
