/** What kubelet passes over in its manifest directory stops no command; test/e2e/kubelet-decode.test.ts has kubelet's own answer. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { describeHostPathUser } from '../../src/static-pods/host-path-users.js'
import { run } from './command.js'
import { fillWithOthers } from './passed-over.js'
import { NodeDisk, podText } from './pods.js'
import { RolledNode } from './rollout/rolled-node.js'

await t.test('a rollout passes over what kubelet passes over, and takes a name that kubelet reads', async (t) => {
  const node = new RolledNode(t)
  fillWithOthers(node.manifests, node.text('web', 3))
  t.match(await node.rollout(await node.request({ tree: true }), () => 'ready'), {
    outcome: 'ready',
    manifests: ['web.yaml'],
  })
  const source = join(node.root, 'b~.yaml')
  writeFileSync(source, podText({ name: 'b' }))
  const args = ['rollout', source, '--pod-manifest-dir', node.manifests, '--ready-exec', 'true', '--ready-for', '1ms']
  const { code, stderr } = await run([...args, '--timeout', '10m'])
  t.equal(code, 0, stderr)
  t.match(readFileSync(join(node.manifests, 'b~.yaml'), 'utf8'), /"name":"b"/)
})

await t.test('so do prune, install and the look for pods that mount a directory', async (t) => {
  const node = new NodeDisk(t)
  for (const revision of [1, 2, 3]) node.makeRevision(revision)
  node.makeManifest(podText({ labels: { revision: '3' } }))
  fillWithOthers(node.manifests, podText({ labels: { revision: '1' } }))
  const places = ['--resource-dir', node.resources, '--pod-manifest-dir', node.manifests]
  const pruned = await run(['prune', '--static-pod-name=web-pod', '--keep=0', ...places])
  t.equal(pruned.code, 0, pruned.stderr)
  t.match(pruned.stdout, /^kept +\S+web-pod-3 .*\nremoved +\S+web-pod-2\nremoved +\S+web-pod-1\n$/)
  const files = join(node.root, 'files')
  const source = join(node.root, 'web-pod.yaml')
  mkdirSync(files)
  writeFileSync(source, podText())
  const installed = await run(['install', source, ...places, '--resources', files, '--revision', '4'])
  t.equal(installed.code, 0, installed.stderr)
  t.notMatch(pruned.stderr + installed.stderr, node.manifests, 'no word of them')
  t.equal(await describeHostPathUser(join(node.root, 'files'), node.manifests), undefined)
})

await t.test('a manifest that is too large for kubelet is refused', async (t) => {
  const node = new NodeDisk(t)
  const source = join(node.root, 'web.yaml')
  writeFileSync(source, `${podText()}#`.padEnd(10 * 1024 * 1024, 'x'))
  const refused = await run(['install', source, '--pod-manifest-dir', node.manifests])
  t.match(refused, { code: 2, stderr: /web\.yaml: it holds 10485760 bytes; kubelet reads at most 10485759/ })
})
