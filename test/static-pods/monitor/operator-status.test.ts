import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { json } from '../../kubernetes/connection/api-server.js'
import { run } from '../command.js'
import { InstallerApi } from '../install/installer-api.js'
import { podText } from '../pods.js'

const path = '/apis/operator.openshift.io/v1/kubeapiservers/cluster'
const others = { nodeName: 'n2', currentRevision: 5, targetRevision: 7 }

interface Patch {
  readonly metadata: { resourceVersion: string }
  readonly status: { nodeStatuses: object[] }
}

/** Revision 7 is live on n1, and the operator has a status; `conflicts`: updates that another client is ahead of. */
async function scene(t: Parameters<typeof InstallerApi.start>[0], own: object, { conflicts = 0, denied = '' } = {}) {
  const api = await InstallerApi.start(t)
  api.makeRevision(7)
  api.makeManifest(podText({ labels: { revision: '7' } }))
  api.objects.set('/api/v1/namespaces/kube-system/pods/web-n1', {
    metadata: { labels: { revision: '7' } },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  })
  let version = 1
  const patches: Patch[] = []
  api.override = (seen, reply) => {
    if (seen.method === denied) json(reply, 403, { kind: 'Status', message: 'no' })
    else if (seen.path === '/apis/operator.openshift.io') json(reply, 200, { preferredVersion: { version: 'v1' } })
    else if (seen.method === 'GET' && seen.path === path) {
      const status = { nodeStatuses: [others, { nodeName: 'n1', lastFailedCount: 1, ...own }] }
      json(reply, 200, { metadata: { resourceVersion: String(version) }, status })
    } else if (seen.method === 'PATCH' && seen.path === `${path}/status`) {
      const patch = JSON.parse(seen.body) as Patch
      if (conflicts-- > 0) version++
      const isCurrent = patch.metadata.resourceVersion === String(version)
      if (isCurrent) patches.push(patch)
      json(reply, isCurrent ? 200 : 409, {})
    } else return undefined
    return true
  }
  const monitor = (...more: string[]) =>
    run([
      ...[
        'monitor',
        '--ready-for=0s',
        '--revision=7',
        '--target-name=web',
        '--node-name=n1',
        '--ready-exec=true',
        '-o',
        'json',
      ],
      ...[`--resource-dir=${api.resources}`, `--manifests-dir=${api.manifests}`, `--kubeconfig=${api.kubeconfig}`],
      ...['--operator-status=kubeapiservers.operator.openshift.io/cluster', ...more],
    ])
  return { api, patches, monitor }
}

await t.test('monitor makes a ready target revision the current one, and retries conflicts', async (t) => {
  const { patches, monitor } = await scene(t, { currentRevision: 6, targetRevision: 7 }, { conflicts: 2 })
  const result = await monitor()
  t.equal(result.code, 0, result.stderr)
  const own = { nodeName: 'n1', lastFailedCount: 1, currentRevision: 7, targetRevision: 0 }
  t.same(patches, [{ metadata: { resourceVersion: '3' }, status: { nodeStatuses: [others, own] } }])
})

await t.test('monitor leaves another target revision, or none, alone', async (t) => {
  for (const own of [
    { currentRevision: 6, targetRevision: 8 },
    { currentRevision: 7, targetRevision: 0 },
  ]) {
    const { patches, monitor } = await scene(t, own)
    const result = await monitor()
    t.equal(result.code, 0, result.stderr)
    t.same(patches, [])
  }
})

await t.test('monitor exits with 1 and names a missing right, and the next run completes', async (t) => {
  const { api, monitor } = await scene(t, { targetRevision: 7 }, { denied: 'PATCH' })
  const denied = await monitor()
  t.equal(denied.code, 1)
  t.match(denied.stderr, /HTTP 403.*verb patch on the resource kubeapiservers\/status.*resourceNames: \[cluster\]/)
  const other = await scene(t, { targetRevision: 7 })
  api.override = other.api.override
  t.equal((await monitor()).code, 0)
  t.equal(other.patches.length, 1)
})

await t.test('monitor without a credential is told to have one, and no right', async (t) => {
  const { api, monitor } = await scene(t, { targetRevision: 7 }, { denied: 'PATCH' })
  const text = readFileSync(api.kubeconfig, 'utf8')
  writeFileSync(api.kubeconfig, text.replace('"token":"a-token"', ''))
  t.not(readFileSync(api.kubeconfig, 'utf8'), text)
  const { code, stderr } = await monitor()
  t.equal(code, 1)
  t.match(stderr, /patch failed with HTTP 403 \(no\): no credential was sent: give the user/)
  t.notMatch(stderr, /ClusterRole/)
})

await t.test('--operator-status names a resource of a group, and needs --kubeconfig', async (t) => {
  const base = [
    'monitor',
    '--ready-for=0s',
    '--revision=7',
    '--target-name=web',
    '--resource-dir=r',
    '--manifests-dir=m',
    '--ready-exec=true',
  ]
  t.match(await run([...base, '--operator-status=cluster']), { code: 2, stderr: /RESOURCE\.GROUP\/NAME/ })
  const none = await run([...base, '--operator-status=kubeapiservers.operator.openshift.io/cluster'])
  t.match(none, { code: 2, stderr: /--operator-status needs --kubeconfig/ })
})
