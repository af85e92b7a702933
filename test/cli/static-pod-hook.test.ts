/** The staticPod hook under the agent: the manifest names the content that is published, once for each. */
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { contentAnnotation, contentMark } from '../../src/static-pods/renew.js'
import { until } from '../until.js'
import { holdfast, Node } from './holdfast.js'

await t.test('the staticPod hook renews a manifest once for one content, over restarts of the agent', async (t) => {
  const node = new Node(t, [])
  mkdirSync(node.path('manifests'))
  const manifest = node.path('manifests/web.yaml')
  const pod = 'apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers: [{ name: c, image: i }]\n'
  writeFileSync(manifest, pod)
  const hook = { staticPod: { name: 'web', manifestDirectory: node.path('manifests') } }
  // Two directories of one pod: one change of its manifest for both.
  node.configure(
    ['a', 'b'].map((name) => ({ path: `disk/${name}`, contents: [{ configMap: name }], afterPublish: [hook] })),
  )
  node.put('ConfigMap', 'a', { v: '1' })
  node.put('ConfigMap', 'b', { v: '1' })
  const digests = () => {
    const { directories = [] } = JSON.parse(node.read('state/status.json') ?? '{}') as {
      directories?: { path: string; digest: string; pendingHooks: string[] }[]
    }
    return directories.every(({ pendingHooks }) => pendingHooks.length === 0) ? directories : []
  }
  const isNamed = () => {
    const key = node.path('manifests/.holdfast-content-key')
    if (digests().length !== 2 || !existsSync(key)) return false
    const text = readFileSync(manifest, 'utf8')
    return digests().every(({ path, digest }) =>
      text.includes(`"${contentAnnotation(path)}": "${contentMark(readFileSync(key), path, digest)}"`),
    )
  }
  const agent = node.agent()
  await until('the manifest names both', isNamed)
  t.equal(await agent.end('SIGTERM'), 0)
  const { ino } = statSync(manifest)
  const again = node.agent()
  await again.logged('Unchanged', 2)
  again.signal('SIGHUP')
  await again.logged('Unchanged', 2)
  t.equal(statSync(manifest).ino, ino)
  const before = digests()[0]?.digest
  node.put('ConfigMap', 'a', { v: '2' })
  await until('new content is named', () => digests()[0]?.digest !== before && isNamed())
  t.not(statSync(manifest).ino, ino)
  t.equal(await again.end('SIGTERM'), 0)
  t.equal((await node.run('check', '-o', 'json')).stdout.includes('web.yaml is the manifest of web'), true)

  const next = node.path('next.yaml')
  writeFileSync(next, pod.replace('image: i', 'image: j'))
  const places = ['--pod-manifest-dir', node.path('manifests'), '--ready-exec=false', '--no-fallback']
  t.equal((await holdfast(['rollout', next, ...places, '--timeout=1ms'])).code, 1)
  const stands = 'a rollout of web.yaml in .* was interrupted, and is at web.yaml'
  t.match(JSON.parse((await node.run('status', '-o', 'json')).stdout), {
    rollouts: [{ directory: node.path('manifests'), state: 'interrupted' }],
  })
  t.match((await node.run('status')).stdout, new RegExp(`${stands}.*\n-> no process is seen that works on it: `))
  const { checks } = JSON.parse((await node.run('check', '-o', 'json')).stdout) as { checks: { check: string }[] }
  t.match(
    checks.filter(({ check }) => check === 'rollout'),
    [{ status: 'WARN', found: new RegExp(stands), advice: /--resume --pod-manifest-dir/ }],
  )
})
