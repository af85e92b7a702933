/** An operator's view of an agent in a cluster: by the commands of docs/operations.md, as they stand there. */
import type { Test } from 'tap'
import { command } from '../deploy/operations-page.js'
import type { Cluster } from '../e2e/cluster.js'
import { recordedEvent } from './events.js'
import type { TestNode } from './node.js'
import { target, type Rotation } from './reading.js'

/**
 * Runs the page's kubectl command that begins so, with `values` for the reader's own values; returns its output.
 * @throws Error where its exit code is not 0, or the page has no such command
 */
export function documented(
  cluster: Cluster,
  beginning: string,
  values: Readonly<Record<string, string>> = {},
): Promise<string> {
  return cluster.kubectl(command(beginning, values).slice(1))
}

export async function eventsOfRotation(t: Test, cluster: Cluster, node: TestNode, rotation: Rotation): Promise<void> {
  await rotation.next()
  const version = await cluster.kubectl([
    ...['--namespace=holdfast', 'get', 'secret', 'node-serving-cert'],
    '--output=jsonpath={.metadata.resourceVersion}',
  ])
  const note = `resourceVersion ${version} is published to ${target} on node ${node.name}`
  const onSecret = await recordedEvent(cluster, 'Published', 'Secret/node-serving-cert', (event) => event.note === note)
  t.match(onSecret, { type: 'Normal', metadata: { namespace: 'holdfast' } })
  const reporter = { reportingController: 'holdfast.dev/agent', reportingInstance: node.name }
  t.match(onSecret, reporter)
  const onNode = await recordedEvent(cluster, 'Published', `Node/${node.name}`, (event) =>
    event.note.includes('replaced'),
  )
  t.match(onNode, { type: 'Normal', metadata: { namespace: 'default' }, ...reporter })

  // And so it is shown.
  t.match(
    await documented(cluster, 'kubectl describe node', { n1: node.name }),
    /Published .*holdfast\.dev\/agent .* is replaced/,
  )
  t.match(
    await documented(cluster, 'kubectl events', {
      'kube-system': 'holdfast',
      'secret/serving-cert': 'secret/node-serving-cert',
    }),
    note,
  )
  t.match(await documented(cluster, 'kubectl get events'), /Published/)
}

export async function questionsOfOperator(t: Test, cluster: Cluster, POD: string): Promise<void> {
  t.match(
    await documented(cluster, 'kubectl -n holdfast rollout status'),
    'daemon set "holdfast" successfully rolled out',
  )
  t.match(
    await documented(cluster, 'kubectl -n holdfast exec POD -- holdfast status', { POD }),
    new RegExp(`^${target} +True`, 'm'),
  )
  const check = await documented(cluster, 'kubectl -n holdfast exec POD -- holdfast check', { POD })
  t.match(check, /^this process +capabilities +OK/m)
  t.match(check, / credentials +OK +accepted as system:serviceaccount:holdfast:holdfast$/m)
  t.match(check, /^this node is fit: 0 faults/m)
  const log = await documented(cluster, 'kubectl -n holdfast logs POD', { POD })
  t.match(log, new RegExp(`${target} is replaced, (and durable|but durability)`))
  t.notMatch(log, 'PRIVATE KEY')
}

/** Where the node's agent listens with the component `metrics`: what the node tells as its address. */
export async function addressOf(cluster: Cluster, node: string): Promise<string> {
  const filter = '{.status.addresses[?(@.type=="InternalIP")].address}'
  return cluster.kubectl(['get', 'node', node, `--output=jsonpath=${filter}`])
}
