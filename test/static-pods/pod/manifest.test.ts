import t from 'tap'
import { isObjectName } from '../../../src/kubernetes-names.js'
import { parseRevision, revisionOf, revisionsNamedIn } from '../../../src/static-pods/names.js'
import { encodeManifest, parseManifest, withRevision, writeManifest } from '../../../src/static-pods/pod/manifest.js'
import { needsOwnUid } from '../../../src/static-pods/kubelet.js'
import { substitute } from '../../../src/static-pods/install/object-files.js'

await t.test('parseManifest reads a manifest as kubelet reads it', async (t) => {
  const text = `
apiVersion: v1
kind: Pod
metadata:
  name: web
  uid: to-be-cleared
  annotations: {octal: '0644'}
spec:
  hostNetwork: yes
  containers:
  - name: a
    image: b
    env: &env
    - {name: PORT, value: "8080"}
    <<: {stdin: true}
  - {name: c, image: d, env: *env}
  volumes:
  - {name: v, downwardAPI: {defaultMode: 0644}}
`
  const manifest = await parseManifest(Buffer.from(text), 'x')
  const encoded = JSON.parse(Buffer.from(encodeManifest(manifest, undefined)).toString()) as object
  const env = [{ name: 'PORT', value: '8080' }]
  t.same(encoded, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', annotations: { octal: '0644' } },
    spec: {
      hostNetwork: true,
      containers: [
        { name: 'a', image: 'b', env, stdin: true },
        { name: 'c', image: 'd', env },
      ],
      volumes: [{ name: 'v', downwardAPI: { defaultMode: 420 } }],
    },
  })
  t.equal(manifest.uid, 'to-be-cleared')
  const other = JSON.parse(Buffer.from(encodeManifest(manifest, 'new', { a: 'b' })).toString()) as object
  t.match(other, { metadata: { uid: 'new', annotations: { a: 'b', octal: '0644' } } })
})

await t.test('writeManifest changes the text as its author wrote it', async (t) => {
  const head = 'apiVersion: v1\nkind: Pod # of ours\nmetadata:\n'
  const rest = 'spec:\n  # The web.\n  containers: [{name: web, image: "web:1"}] # one\n  x: 0x20000000000001\n'
  const read = (text: string) => parseManifest(Buffer.from(text), 'x')
  const written = async (text: string, uid?: string) =>
    Buffer.from(await writeManifest(withRevision(await read(text), 7), uid, { a: 'b' })).toString()
  t.equal(
    await written(`${head}  name: web # its name\n${rest}`),
    `${head}  "annotations": {"a": "b"}\n  "labels": {"revision": "7"}\n  name: web # its name\n${rest}`,
  )
  t.equal(
    await written(`${head}  labels:\n    app: web\n  uid: old\n  name: web\n  annotations: {a: c}\n${rest}`, 'new'),
    `${head}  labels:\n    "revision": "7"\n    app: web\n  uid: "new"\n  name: web\n  annotations: {a: "b"}\n${rest}`,
  )
  const json = `{\n  "apiVersion": "v1", "kind": "Pod",\n  "metadata": {"name": "web"},\n  "spec": {"containers": [{"name": "web", "image": "web:1"}], "x": 1.50}\n}\n`
  const labels = '"annotations": {"a": "b"}, "labels": {"revision": "7"}, '
  t.equal(await written(json), json.replace('{"name": "web"},', `{${labels}"name": "web"},`))

  const aliased = `${head}  name: web\n  labels: &l {app: web}\n  annotations: *l\n${rest}`
  const fallback = await written(aliased)
  t.match(JSON.parse(fallback), {
    metadata: { labels: { app: 'web', revision: '7' }, annotations: { app: 'web', a: 'b' } },
  })
  t.match(fallback, /"x":9007199254740993/, 'with every digit')
})

await t.test('parseManifest reads UTF-16 with a byte order mark, as kubelet does', async (t) => {
  const text = '\ufeffapiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: é, image: b}]}\n'
  const little = Buffer.from(text, 'utf16le')
  for (const bytes of [little, Buffer.from(little).swap16()]) {
    const manifest = await parseManifest(bytes, 'x')
    t.match(manifest, { name: 'web', pod: { spec: { containers: [{ name: 'é' }] } } })
    const [written] = [Buffer.from(await writeManifest(withRevision(manifest, 7), undefined))]
    t.equal((await parseManifest(written, 'x')).revision, '7')
  }
  await t.rejects(parseManifest(little.subarray(2), 'x'), { message: /not UTF-8 text, nor UTF-16/ })
  await t.rejects(parseManifest(little.subarray(0, -1), 'x'), { message: /not UTF-8 text, nor UTF-16/ })
})

await t.test('substitute replaces words in bytes of any kind, in their order', async (t) => {
  const words = { revision: 12, nodeName: 'a.b-c' }
  const bytes = (text: string) => Buffer.from(text, 'latin1')
  t.same(
    substitute(bytes('\xffREVISION\x00NODE_NAME\xc3NODE_ENVVAR_NAME REVISIONS'), words),
    bytes('\xff12\x00a.b-c\xc3a_b_c 12S'),
  )
  const same = bytes('nothing \x80')
  t.equal(substitute(same, words), same, 'no copy where there is nothing to replace')
  t.same(substitute(bytes('REVISION NODE_NAME'), { revision: 1, nodeName: undefined }), bytes('1 NODE_NAME'))
  t.same(substitute(bytes('NODE_NAME'), { revision: 1, nodeName: '$&' }), bytes('$&'), 'no patterns')
})

await t.test('needsOwnUid is true for kubelets before 1.23.0', async (t) => {
  for (const old of ['v1.22.17', 'v1.9.0', '1.22.0+abc', 'v1.23.0-rc.1', 'v0.99.0']) t.ok(needsOwnUid(old), old)
  for (const late of ['v1.23.0', 'v1.23.0+k3s', 'v1.23.1-rc.0', 'v1.35.4', 'v2.0.0', 'unknown', '', undefined])
    t.notOk(needsOwnUid(late), String(late))
})

await t.test('revisionOf and revisionsNamedIn find whole revision names only', async (t) => {
  t.equal(parseRevision('2147483647'), 2_147_483_647)
  for (const wrong of ['', '01', '-1', '+1', '1e3', '2147483648', '12345678901', ' 1'])
    t.equal(parseRevision(wrong), undefined, wrong)
  t.equal(revisionOf('web-pod', 'web-pod-7'), 7)
  t.equal(revisionOf('web-pod', 'web-pod-7-old'), undefined)
  const text = '/r/web-pod-7/x web-pod-8, my-web-pod-9 web-pod-10x "web-pod-11" web-pod-012 other/web-pod-0'
  t.same([...revisionsNamedIn('web-pod', text)], [7, 8, 11, 0])
  t.ok(isObjectName('a.b-c'))
  for (const wrong of ['', '..', 'a/b', 'A', '-a', 'a..b', 'a_b', 'x'.repeat(254)]) t.notOk(isObjectName(wrong), wrong)
})
