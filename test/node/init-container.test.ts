/**
 * The example of deploy/init-container under a real kubelet: it waits for the Secret, publishes it as an ordinary user without
 * capabilities, and then the program beside it runs, without a token.
 */
import t from 'tap'
import { command } from '../deploy/operations-page.js'
import { Namespace } from '../e2e/namespace.js'
import { ClusterPods } from './cluster-pods.js'
import { startCluster } from './controllers.js'
import { apply, serverVariables } from './deploy.js'
import { loadImage } from './image.js'
import type { Pod } from './kubelet.js'
import { TestNode } from './node.js'
import { unfit } from './requirements.js'
import { makePairs } from './workload.js'

const label = 'app.kubernetes.io/name=with-files'

const reason = await unfit()
if (reason === undefined) await suite()
else t.plan(0, reason)

async function suite(): Promise<void> {
  const cluster = await startCluster(t)
  const node = await TestNode.start(t, { cluster })
  await loadImage(node.containerd)
  const pods = new ClusterPods(cluster, node.space, 'holdfast')
  // No CNI, and no kube-proxy: the node's network, and the API server's own address.
  const patch = [
    { op: 'add', path: '/spec/hostNetwork', value: true },
    { op: 'add', path: '/spec/initContainers/0/env', value: serverVariables(cluster) },
    // Sooner than its minute.
    { op: 'replace', path: '/spec/initContainers/0/args/2', value: '--timeout=2s' },
  ]
  await apply(cluster, {
    base: 'init-container',
    patches: [{ target: { kind: 'Pod' }, patch: JSON.stringify(patch) }],
  })

  await t.test('without the Secret, the init container fails and starts again', async (t) => {
    const pod = await pods.one('the first try has failed', label, ({ status }) => {
      const [files] = status.initContainerStatuses ?? []
      return files !== undefined && files.restartCount > 0
    })
    t.notOk(pod.status.containerStatuses?.[0]?.state.running, 'the program does not run')
    t.match(pods.output(pod, 'stdout'), /^failed {2}\/files\/published\/serving {2}ObjectMissing: /)
  })

  await t.test('with the Secret, the program finds its files', async (t) => {
    const [pair] = await makePairs(node.workload, 1)
    if (!pair) throw new Error('no pair was made')
    const namespace = new Namespace('holdfast', cluster.api, node.space.onDisk('/etc/kubernetes'))
    await namespace.putSecret('node-serving-cert', { 'tls.crt': pair.certificate, 'tls.key': pair.key })
    const pod = await pods.one('the pod has ended', label, ({ status }: Pod) => status.phase === 'Succeeded')
    const [, ...logs] = command('kubectl -n holdfast logs with-files')
    const output = await cluster.kubectl(logs)
    t.equal(pod.metadata.name, 'with-files')
    t.match(output, /^created {2}\/files\/published\/serving {2}sha256:/m)
    t.match(output, /^640 65532:65532 \S+\/tls\.crt$/m, 'the program shows what it got')
    t.match(output, /^640 65532:65532 \S+\/tls\.key$/m)
  })
}
