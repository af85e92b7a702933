/** Requests that a rollout refuses before it changes anything. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needsRoot, openDirectoryIn, strangerMakes } from '../../durable/stranger.js'
import t from 'tap'
import { replaceDirectory, replaceFile, setHold } from '../../../src/durable/index.js'
import { readManifests } from '../../../src/static-pods/rollout/rollout-plan.js'
import { readRolloutTree } from '../../../src/static-pods/rollout/rollout-tree.js'
import { podText } from '../pods.js'
import { RolledNode, type Answer } from './rolled-node.js'

const ready: Answer = () => 'ready'

await t.test('rollout refuses each fault with its place, and changes nothing', async (t) => {
  const node = new RolledNode(t, ['etcd', 'api'])
  const bad = join(node.root, 'bad.yaml')
  const refused = async (text: string, message: RegExp) => {
    writeFileSync(bad, text)
    await t.rejects(readManifests([bad]), message)
  }
  await refused('{', /bad\.yaml: /)
  await refused(podText({}, { containers: [] }), /bad\.yaml: spec\.containers is missing/)
  await refused(podText({ name: 'A' }), /bad\.yaml: metadata\.name/)
  await t.rejects(readManifests([join(node.root, 'none')]), /none does not exist/)
  await t.rejects(readManifests([node.live('api'), node.source('api', 2)]), /are manifests of one pod/)
  await t.rejects(readRolloutTree(bad, node.pki, false), /--resources: .*bad\.yaml is not a directory/)
  await t.rejects(readRolloutTree(node.root, node.pki, false), /--resource-dir: .*pki lies in --resources/)

  const rejects = async (more: Parameters<RolledNode['request']>[0], message: RegExp) => {
    const request = await node.request(more)
    await t.rejects(node.rollout(request, ready), message)
  }
  await rejects({ manifestDirectory: join(node.root, 'none') }, /--pod-manifest-dir: .*none does not exist/)
  const inside = {
    ...(await node.request()),
    tree: await readRolloutTree(node.staged(), join(node.manifests, 'x'), false),
  }
  await t.rejects(node.rollout(inside, ready), /--resource-dir: .* lies in the manifest directory/)
  const around = { ...(await node.request()), tree: await readRolloutTree(node.staged(), node.root, false) }
  await t.rejects(node.rollout(around, ready), /--resource-dir: the manifest directory .* lies in/)
  writeFileSync(join(node.manifests, 'copy.yaml'), node.text('api', 1))
  await rejects({}, /hold the pod of .*kubelet runs only one of them/)
  rmSync(join(node.manifests, 'copy.yaml'))
  const other = await readManifests([node.source('other', 2, 'api.yaml')])
  await rejects({ manifests: other }, /holds the pod api, and .* the pod other/)
  const kept = readdirSync(node.manifests).filter((name) => name.startsWith('.'))
  t.same(kept, [], 'not even a lock')
  t.same(node.versions(), { etcd: '1', api: '1' })
})

await t.test("rollout refuses another user's lock before any change", needsRoot, async (t) => {
  const node = new RolledNode(t, ['etcd', 'api'])
  await strangerMakes(t, openDirectoryIn(node.root, 'locks'), 'installer.lock', 'file')
  const request = await node.request({ manifestLock: join(node.root, 'locks/installer.lock') })
  await t.rejects(
    node.rollout(request, ready),
    /installer\.lock belongs to user 65534; nothing was changed; name a lock/,
  )
  t.same(node.versions(), { etcd: '1', api: '1' })
})

await t.test("rollout refuses an operator's held file and an agent's directory before any change", async (t) => {
  const node = new RolledNode(t, ['etcd', 'api'])
  await replaceFile(node.live('api'), node.text('api', 1))
  await setHold(node.live('api'), { reason: 'INC-7', since: 0, until: null })
  await t.rejects(node.rollout(await node.request({ tree: true }), ready), /is held since .*INC-7/)
  await setHold(node.live('api'), undefined)
  await replaceDirectory(node.pki, { files: { 'ca.crt': 'agent' }, publisher: 'agent' })
  await t.rejects(
    node.rollout(await node.request({ tree: true }), ready),
    /holdfast agent published .*leave out --resources/,
  )
  t.same(node.versions(), { etcd: '1', api: '1' })
  t.same(node.tree(), { 'ca.crt': 'agent' })
})

await t.test('rollout leaves a damaged state to people, and says what is wrong with it and what to do', async (t) => {
  const node = new RolledNode(t)
  const path = join(node.manifests, '.holdfast-rollout')
  await node.rollout(await node.request({ fallback: false, tree: true }), () => 'not-ready')
  const whole = readFileSync(path, 'utf8')
  const state = JSON.parse(whole) as { manifests: object[]; tree: object; readiness: object }
  const [manifest] = state.manifests
  const cases: [string, string][] = [
    ['', 'it is empty'],
    [whole.slice(0, 99), 'it is no whole JSON'],
    ['[]', 'version is not 1, which this version of holdfast writes'],
    ['{"version":2}', 'version is not 1, which this version of holdfast writes'],
    [JSON.stringify({ ...state, phase: 'gone' }), 'phase is none that this version of holdfast knows'],
    [JSON.stringify({ ...state, manifests: undefined }), 'manifests is no list'],
    [JSON.stringify({ ...state, manifests: [{ ...manifest, name: '../web.yaml' }] }), 'manifests[0].name'],
    [JSON.stringify({ ...state, manifests: [{ ...manifest, name: undefined }] }), 'manifests[0].name'],
    [JSON.stringify({ ...state, manifests: [{ ...manifest, next: '*' }] }), 'manifests[0].next'],
    [JSON.stringify({ ...state, manifests: [{ ...manifest, previous: 7 }] }), 'manifests[0].previous'],
    [JSON.stringify({ ...state, manifests: [{ ...manifest, mode: '0600' }] }), 'manifests[0].mode'],
    [JSON.stringify({ ...state, manifests: [{ ...manifest, owner: {} }] }), 'manifests[0].owner'],
    [JSON.stringify({ ...state, tree: { ...state.tree, target: 'pki' } }), 'tree.target'],
    [JSON.stringify({ ...state, tree: { ...state.tree, old: {} } }), 'tree.old'],
    [JSON.stringify({ ...state, tree: { ...state.tree, oldContent: null } }), 'tree.oldContent'],
    [JSON.stringify({ ...state, reached: 9 }), 'reached'],
    [JSON.stringify({ ...state, timeout: '5m' }), 'timeout'],
    [JSON.stringify({ ...state, readiness: { ...state.readiness, urls: ['x'] } }), 'readiness.urls'],
    [JSON.stringify({ version: 1, phase: 'ended', outcome: 'ready', request: 'x', kept: [{}] }), 'kept[0].target'],
  ]
  for (const [text, fault] of cases) {
    writeFileSync(path, text)
    for (const act of [() => node.resume(ready), async () => node.rollout(await node.request(), ready)]) {
      const { message } = await act().then(
        () => new Error('it went on'),
        (error: unknown) => error as Error,
      )
      t.ok(message.startsWith(`${path} is damaged: ${fault}`), `${message}, for ${text.slice(0, 200)}`)
      t.match(message, /; nothing was changed; .*make .* what they are to be.*, then remove /)
    }
    t.same([node.versions(), node.tree()], [{ web: '2' }, 'new'])
  }
  writeFileSync(path, whole)
  t.match(await node.resume(ready), { outcome: 'ready' }, 'the whole one is taken')
})

await t.test('rollout names first a pod that would go on with the old directory', async (t) => {
  const node = new RolledNode(t, ['etcd', 'api'])
  const volumes = [{ name: 'pki', hostPath: { path: join(node.pki, 'etcd') } }]
  writeFileSync(join(node.manifests, 'other.yaml'), podText({ name: 'other' }, { volumes }))
  await t.rejects(
    node.rollout(await node.request({ tree: true }), ready),
    /other\.yaml mount .*name these manifests, too/,
  )
  t.equal(node.tree(), 'old')
  writeFileSync(join(node.manifests, 'other.yaml'), '{')
  await t.rejects(node.rollout(await node.request({ tree: true }), ready), /other\.yaml is not readable as a pod/)
  const manifests = await readManifests([node.source('new', 2, 'new.yaml')])
  await t.rejects(node.rollout(await node.request({ manifests }), ready), /other\.yaml is not readable as a pod/)
  t.same(
    readdirSync(node.root).filter((name) => name.startsWith('.')),
    [],
    'not even a lock',
  )
})
