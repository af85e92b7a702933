/** A pod outside OpenShift: kubeadm's kube-apiserver.yaml has no label and no -pod in its name. */
import { mkdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { run } from '../command.js'
import { InstallerApi } from '../install/installer-api.js'
import { NodeDisk, podText } from '../pods.js'

const name = 'kube-apiserver'

await t.test(
  'install sets the label of a revision; monitor records a ready one, and takes an unready one back',
  async (t) => {
    const node = new NodeDisk(t)
    mkdirSync(node.manifests)
    const source = join(node.root, `${name}.yaml`)
    const live = node.manifest(name)
    const install = (revision: number, image: string) => {
      writeFileSync(source, podText({ name, labels: { tier: 'control-plane' } }, { containers: [{ name, image }] }))
      const places = [`--resource-dir=${node.resources}`, `--pod-manifest-dir=${node.manifests}`]
      return run(['install', source, `--revision=${revision}`, ...places])
    }
    const labels = () => (JSON.parse(readFileSync(live, 'utf8')) as { metadata: { labels: object } }).metadata.labels
    const monitor = (revision: number, ...more: string[]) =>
      run([
        ...['monitor', '--ready-for=0s', `--revision=${revision}`, `--pod=${name}`, `--manifest=${live}`, '-o', 'json'],
        ...[`--resource-dir=${node.resources}`, '--fallback-timeout-duration=1ms', ...more],
      ])

    const first = await install(1, 'apiserver:1')
    t.equal(first.code, 0, first.stderr)
    t.same(labels(), { tier: 'control-plane', revision: '1' })
    const ready = await monitor(1, '--ready-exec=true')
    t.equal(ready.code, 0, ready.stderr)
    t.equal(readlinkSync(join(node.resources, `${name}-last-known-good`)), join(node.revision(1, name), `${name}.yaml`))

    t.equal((await install(2, 'apiserver:2')).code, 0)
    const older = await install(1, 'apiserver:1')
    t.match(older, { code: 1, stderr: /is of revision 2, and revision 1 is older/ })
    const broken = await monitor(2, '--ready-exec=exit 1')
    t.equal(broken.code, 1)
    t.match(JSON.parse(broken.stdout), { outcome: 'fell-back', revision: 2, to: 1 })
    t.match(labels(), { revision: '1' })
    t.match(readFileSync(live, 'utf8'), /apiserver:1/)

    const keeps = ['prune', '--keep=0', `--static-pod-name=${name}`, `--resource-dir=${node.resources}`]
    const pruned = await run([...keeps, `--pod-manifest-dir=${node.manifests}`, '-o', 'json'])
    t.match(JSON.parse(pruned.stdout), {
      revisions: [
        { revision: 2, outcome: 'removed' },
        { revision: 1, outcome: 'kept' },
      ],
    })
  },
)

await t.test('install reports a label of another revision', async (t) => {
  const node = new NodeDisk(t)
  mkdirSync(node.manifests)
  const source = join(node.root, 'web.yaml')
  writeFileSync(source, podText({ labels: { revision: '5' } }))
  const places = [`--resource-dir=${node.resources}`, `--pod-manifest-dir=${node.manifests}`]
  const { code, stderr } = await run(['install', source, '--revision=7', ...places])
  t.equal(code, 0, stderr)
  t.match(stderr, /web\.yaml has the label `revision: 5`, not 7: .*cannot tell which revision is live/)
})

await t.test(
  'install from the API keeps the manifest as its operator wrote it, and reports a missing label',
  async (t) => {
    const api = await InstallerApi.start(t)
    api.putRevision(6, { 'pod.yaml': podText({ labels: { app: 'web' } }) })
    const { code, stderr } = await api.install(6)
    t.equal(code, 0, stderr)
    t.match(stderr, /web-pod\.yaml has no label `revision`: /)
    t.notMatch(readFileSync(api.manifest(), 'utf8'), /"revision"/)
  },
)

await t.test('--pod and --manifest go together, and not with --target-name', async (t) => {
  const base = ['monitor', '--revision=1', '--resource-dir=r', '--ready-exec=true']
  t.match(await run([...base, '--pod=a', '--target-name=b', '--manifests-dir=m']), {
    code: 2,
    stderr: /exclude each other/,
  })
  t.match(await run([...base, '--target-name=b', '--manifest=m.yaml']), { code: 2, stderr: /--manifest needs --pod/ })
  t.match(await run([...base, '--pod=a', '--manifest=m', '--manifests-dir=m']), {
    code: 2,
    stderr: /exclude each other/,
  })
  t.match(await run([...base, '--pod=a']), { code: 2, stderr: /--manifests-dir is missing/ })
  t.match(await run([...base, '--manifests-dir=m']), { code: 2, stderr: /--target-name \(or --pod\) is missing/ })
})
