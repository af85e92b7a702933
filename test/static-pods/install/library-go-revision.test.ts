/** A revision that library-go's installer wrote is installed already: its manifests are formatted otherwise, and are the same pods. */
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { InstallerApi } from './installer-api.js'
import { podText } from '../pods.js'

const container = { name: 'web', image: 'web:1', stdin: false, resources: { limits: { cpu: '0.1', memory: '1024Mi' } } }
const written = podText({}, { containers: [container], hostNetwork: false, terminationGracePeriodSeconds: 0 })

/** The same pod as Go's encoder of v1.Pod writes it: empty parts that are not optional, canonical quantities, no false. */
function encodedByGo(revision: number, more: object = {}): string {
  const pod = {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: {
      name: 'web',
      namespace: 'kube-system',
      creationTimestamp: null,
      labels: { revision: String(revision) },
    },
    spec: {
      containers: [{ name: 'web', image: 'web:1', resources: { limits: { cpu: '100m', memory: '1Gi' } } }],
      terminationGracePeriodSeconds: 0,
      ...more,
    },
    status: {},
  }
  return `${JSON.stringify(pod)}\n`
}

/** Revision 6 as library-go leaves it, and live. */
async function installed(t: Parameters<typeof InstallerApi.start>[0], manifest: string): Promise<InstallerApi> {
  const api = await InstallerApi.start(t)
  api.putRevision(6, { 'pod.yaml': written })
  const files = {
    'secrets/client/tls.key': 'key of 6',
    'configmaps/web-pod/pod.yaml': written.replace('REVISION', '6'),
    'web-pod.yaml': manifest,
  }
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(api.revision(6), path, '..'), { recursive: true })
    writeFileSync(join(api.revision(6), path), text, { mode: 0o600 })
  }
  mkdirSync(join(api.revision(6), 'staging/installer/secrets'), { recursive: true })
  api.makeManifest(manifest)
  return api
}

await t.test("install takes library-go's revision again, and leaves its directory in place", async (t) => {
  const api = await installed(t, encodedByGo(6))
  const { ino } = statSync(api.revision(6))
  const dry = await api.install(6, ['--dry-run', '-o', 'json'])
  t.equal(dry.code, 0, dry.stderr)
  const again = await api.install(6, ['-o', 'json'])
  t.equal(again.code, 0, again.stderr)
  t.match(JSON.parse(again.stdout), { directories: [{ path: api.revision(6), outcome: 'kept' }] })
  t.equal(statSync(api.revision(6)).ino, ino, 'what a pod may mount is left alone')
  t.ok(readdirSync(api.revision(6)).includes('staging'))
  t.match(JSON.parse(readFileSync(api.manifest(), 'utf8')), { metadata: { labels: { revision: '6' } } })
})

await t.test("install refuses another pod or another file in library-go's revision", async (t) => {
  for (const more of [{ hostPID: true }, { terminationGracePeriodSeconds: 30 }]) {
    const api = await installed(t, encodedByGo(6, more))
    const refused = await api.install(6)
    t.match(refused, { code: 1, stderr: /web-pod-6 exists and differs \(other web-pod\.yaml\)/ })
  }
  const torn = await installed(t, encodedByGo(6))
  writeFileSync(join(torn.revision(6), 'web-pod.yaml'), '{"kind":')
  t.match(await torn.install(6), { code: 1, stderr: /differs \(other web-pod\.yaml\)/ })
  const other = await installed(t, encodedByGo(6))
  writeFileSync(join(other.revision(6), 'secrets/client/tls.key'), 'another')
  t.match(await other.install(6), { code: 1, stderr: /differs \(other secrets\/client\/tls\.key\)/ })
})

await t.test("install keeps library-go's uid for a kubelet before 1.23", async (t) => {
  const uid = '11111111-2222-4333-8444-555555555555'
  const api = await installed(t, encodedByGo(6).replace('"name":"web"', `"uid":"${uid}","name":"web"`))
  api.objects.set('/api/v1/nodes/n1', { status: { nodeInfo: { kubeletVersion: 'v1.22.9' } } })
  const again = await api.install(6)
  t.equal(again.code, 0, again.stderr)
  t.match(JSON.parse(readFileSync(api.manifest(), 'utf8')), { metadata: { uid } })
})
