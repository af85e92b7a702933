/** A static pod is restarted by one annotation in its manifest: once for one content, and nothing else of it changes. */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Disk } from '../../src/durable/index.js'
import { silent } from '../../src/log.js'
import { contentAnnotation, renewStaticPod } from '../../src/static-pods/renew.js'

/** As kubeadm writes it, with a comment that is somebody's. */
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
  const root = mkdtempSync(join(tmpdir(), 'holdfast-renew-'))
  t.teardown(() => rmSync(root, { recursive: true, force: true }))
  const directory = join(root, 'manifests')
  mkdirSync(directory)
  for (const [name, text] of Object.entries(manifests)) writeFileSync(join(directory, name), text, { mode: 0o640 })
  const path = join(directory, 'etcd.yaml')
  const disk = new Disk()
  const renew = (digest: string, more: Partial<Parameters<typeof renewStaticPod>[1]> = {}) =>
    renewStaticPod(disk, {
      pod: 'etcd',
      manifestDirectory: directory,
      lockFile: undefined,
      published: [{ directory: '/etc/certs', digest }],
      lockTimeout: 0,
      signal: new AbortController().signal,
      log: silent,
      ...more,
    })
  return { root, directory, path, disk, renew, text: () => readFileSync(path, 'utf8') }
}

const line = (digest: string, directory = '/etc/certs') => `    "${contentAnnotation(directory)}": "${digest}"\n`
const withLine = (...lines: string[]) => etcd.replace('    kubeadm', `${lines.join('')}    kubeadm`)

await t.test('one line comes, and changes; the same content changes nothing', async (t) => {
  const { path, renew, text } = site(t)
  t.match(contentAnnotation('/etc/certs'), /^holdfast\.dev\/content-[0-9a-f]{16}$/)
  t.equal(await renew('sha256:1'), 'renewed')
  t.equal(text(), withLine(line('sha256:1')))
  t.equal(statSync(path).mode & 0o777, 0o640)
  const { ino } = statSync(path)
  t.equal(await renew('sha256:1'), 'unchanged')
  t.equal(statSync(path).ino, ino)
  t.equal(await renew('sha256:2'), 'renewed')
  t.equal(text(), withLine(line('sha256:2')))
  const both = { published: ['/etc/certs', '/b'].map((directory) => ({ directory, digest: 'sha256:3' })) }
  t.equal(await renew('', both), 'renewed')
  t.equal(text(), withLine(line('sha256:3', '/b'), line('sha256:3')), 'each directory has a line of its own')
})

await t.test('a pod with a uid of its own gets another, for kubelet knows it by that', async (t) => {
  const { renew, text } = site(t, { 'etcd.yaml': etcd.replace('  name: etcd', '  uid: 7c9c\n  name: etcd') })
  t.equal(await renew('sha256:1'), 'renewed')
  const uid = /^ {2}uid: "([0-9a-f-]{36})"$/m.exec(text())?.[1]
  t.ok(uid)
  t.equal(await renew('sha256:1'), 'unchanged')
  t.ok(text().includes(uid ?? ' '))
})

await t.test('what cannot be told, or not changed, is refused, and left as it is', async (t) => {
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
  await t.rejects(link.renew('sha256:1'), { message: /holds no manifest/ })
})

await t.test('the manifest lock is held meanwhile: another holder is waited for, and then refuses', async (t) => {
  const { root, disk, renew, text } = site(t)
  const lockFile = join(root, 'manifests.lock')
  const held = await disk.lock(lockFile, 0, undefined)
  await t.rejects(renew('sha256:1', { lockFile }), { reason: 'Busy', message: /the manifest is as it was/ })
  t.equal(text(), etcd)
  const waiting = renew('sha256:1', { lockFile, lockTimeout: 60_000 })
  await held.release()
  t.equal(await waiting, 'renewed')
})
