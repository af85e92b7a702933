/** A hostPath names a directory by the kernel's way: the tests draw spellings and links, and the kernel itself says where each leads. */
import { closeSync, constants, mkdirSync, openSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { DurableCalls } from '../../src/durable/index.js'
import { silent } from '../../src/log.js'
import { hostPathFaults } from '../../src/static-pods/host-paths.js'
import { prune } from '../../src/static-pods/prune/prune.js'
import { planRollout } from '../../src/static-pods/rollout/rollout-plan.js'
import { Random } from '../random.js'
import { replay, seed } from '../seed.js'
import { NodeDisk, podText } from './pods.js'
import { requestOf } from './prune/prune-request.js'
import { RolledNode } from './rollout/rolled-node.js'

/** Where a path leads, by the kernel; undefined where it leads nowhere. */
function byKernel(path: string): string | undefined {
  try {
    // O_PATH of <fcntl.h>.
    const descriptor = openSync(path, constants.O_RDONLY | 0o10000000)
    const found = readlinkSync(`/proc/self/fd/${descriptor}`)
    closeSync(descriptor)
    return found
  } catch {
    return undefined
  }
}

/** Links of each kind to what lies around a directory, as people make them, and kubespray with /etc/kubernetes/pki. */
function links(root: string, target: string): string[] {
  mkdirSync(join(root, 'far', 'deep'), { recursive: true })
  const name = target.slice(root.length + 1)
  for (const [link, text] of [
    ['absolute', target],
    ['relative', name],
    ['chained', 'far/back'],
    ['far/back', `../${name}`],
    ['far/deep/up', '../../relative'],
    ['above', '.'],
    ['away', 'far/deep'],
    ['dotted', `far/../${name}/.`],
  ] as const) {
    symlinkSync(text, join(root, link))
  }
  return [
    'absolute',
    'relative',
    'chained',
    'far/back',
    'far/deep/up',
    `above/${name}`,
    `away/../../${name}`,
    'dotted',
    name,
  ]
}

/** A random way to a path, and sometimes a look-alike of one. */
function spelled(random: Random, root: string, ways: readonly string[], inside: readonly string[]): string {
  const parts = join(root, random.pick(ways), random.pick(['', ...inside]))
    .split('/')
    .slice(1)
  const text = parts
    .map((part) => {
      const detour = random.chance(0.15) ? random.pick([`${part}/..`, `${part}/./..`]) : ''
      return `${random.pick(['/', '/', '//', '/./', '/.//'])}${detour}${detour && '/'}${part}`
    })
    .join('')
  return `${text}${random.pick(['', '', '/', '/.', '//', '/./'])}`
}

const withVolume = (path: string, type?: string, mounts: object = {}): string =>
  podText(
    { name: 'other' },
    {
      volumes: [{ name: 'v', hostPath: { path, ...(type && { type }) } }],
      containers: [{ name: 'other', image: 'other', ...mounts }],
    },
  )

/** Whether a rollout of the directory refuses a pod that is not named and has this manifest. */
async function planner(node: RolledNode): Promise<(manifest: string) => Promise<string>> {
  const request = await node.request({ tree: true })
  return async (manifest) => {
    writeFileSync(join(node.manifests, 'other.yaml'), manifest)
    return planRollout(request, new DurableCalls(), silent).then(
      () => 'planned',
      (error: unknown) => String(error),
    )
  }
}

const refused = /other\.yaml mount .*name these manifests, too/

await t.test(
  `a rollout refuses every spelling of the directory that it exchanges, and no other (${replay})`,
  async (t) => {
    const node = new RolledNode(t)
    const ways = links(node.root, node.pki)
    const plan = await planner(node)
    const random = new Random(seed)
    const wrong: string[] = []
    let inIt = 0
    for (let n = 0; n < 150; n++) {
      const path = spelled(random, node.root, ways, ['ca.crt', 'etcd', 'etcd/ca.crt'])
      const place = byKernel(path)
      const expected = place !== undefined && `${place}/`.startsWith(`${node.pki}/`)
      if (expected) inIt += 1
      // A way through a file leads nowhere; a refusal of it does no harm.
      if (place === undefined) continue
      const found = await plan(withVolume(path, place.endsWith('.crt') ? 'File' : undefined))
      if (expected ? !refused.test(found) : found !== 'planned') wrong.push(`${path} (${place}): ${found}`)
    }
    t.ok(inIt > 50, `${inIt} lead there`)
    t.strictSame(wrong, [])
  },
)

await t.test('a rollout refuses a missing path in the directory, and no other beside it', async (t) => {
  const node = new RolledNode(t)
  links(node.root, node.pki)
  symlinkSync(join(node.root, 'loop'), join(node.root, 'loop'))
  const plan = await planner(node)
  const { root } = node
  for (const path of [
    // kubelet makes it (DirectoryOrCreate), in the directory that is exchanged.
    `${root}/relative/new/deeper`,
    `${root}/new/../pki/new`,
    `${root}/new/../chained/new/./x/`,
  ]) {
    t.match(await plan(withVolume(path, 'DirectoryOrCreate')), refused, path)
  }
  for (const path of [
    root,
    `${root}/far`,
    `${root}/pki.new`,
    `${root}/pki/..`,
    `${root}/away/pki`,
    `${root}/new/pki`,
    '/',
  ]) {
    t.equal(await plan(withVolume(path, 'DirectoryOrCreate')), 'planned', path)
  }
  t.match(await plan(withVolume(`${root}/loop/x`)), /other\.yaml: .*loop.*ELOOP.*nothing was changed/)
})

await t.test('a rollout refuses a pod that mounts the directory as a part of a volume (subPath)', async (t) => {
  const node = new RolledNode(t)
  const plan = await planner(node)
  const mounting = (subPath: string) => ({ volumeMounts: [{ name: 'v', mountPath: '/x', subPath }] })
  for (const subPath of ['pki', 'pki/', './pki/etcd'])
    t.match(await plan(withVolume(node.root, undefined, mounting(subPath))), refused, subPath)
  t.equal(await plan(withVolume(node.root, undefined, mounting('manifests'))), 'planned')
})

await t.test(`prune keeps a revision that a manifest names by any spelling (${replay})`, async (t) => {
  const node = new NodeDisk(t)
  for (const revision of [1, 2, 3]) node.makeRevision(revision)
  const ways = links(node.resources, node.revision(2))
  const random = new Random(seed)
  const paths = new Set([join(node.resources, 'absolute'), join(node.resources, 'chained', 'secrets/')])
  while (paths.size < 30) paths.add(spelled(random, node.resources, ways, ['secrets', 'secrets/tls', 'web-pod.yaml']))
  // A link beside the revisions counts by itself, so this one lies elsewhere.
  symlinkSync(node.revision(2), join(node.root, 'elsewhere'))
  paths.add(join(node.root, 'elsewhere'))
  paths.add(join(node.root, 'elsewhere', 'secrets'))
  const wrong: string[] = []
  for (const path of paths) {
    if (byKernel(path)?.startsWith(node.revision(2)) !== true) continue
    node.makeManifest(withVolume(path), 'other.yaml')
    const lines = await prune(
      requestOf(node, { keep: 0, dryRun: true }),
      new DurableCalls(),
      silent,
      new AbortController().signal,
    )
    const second = lines.find(({ revision }) => revision === 2)
    if (second?.why !== `named by ${join(node.manifests, 'other.yaml')}`)
      wrong.push(`${path}: ${second?.why ?? 'goes'}`)
  }
  t.strictSame(wrong, [])
})

await t.test('install finds no fault in a path that it makes, in any spelling', async (t: Test) => {
  const node = new RolledNode(t)
  mkdirSync(join(node.root, 'far'))
  symlinkSync('.', join(node.root, 'here'))
  const planned = [join(node.root, 'web-1'), join(node.root, 'web-1', 'secrets')]
  const faultOf = async (path: string) =>
    (await hostPathFaults({ spec: { volumes: [{ name: 'v', hostPath: { path } }] } }, planned)).map(
      ({ problem }) => problem,
    )
  for (const path of ['web-1', '/web-1/', './web-1', 'far/../web-1/.', 'here/web-1', 'here//here/web-1/secrets'])
    t.strictSame(await faultOf(`${node.root}/${path}`), [], path)
  for (const path of ['web-2', 'here/web-1/other'])
    t.strictSame(await faultOf(`${node.root}/${path}`), ['does not exist'], path)
})
