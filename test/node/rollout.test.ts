/**
 * Rollouts that a real kubelet proves wrong: each goes back byte for byte, and tells the cause as the kubelet tells it. A rollout whose
 * probe cannot be run does not begin.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { freePort } from '../e2e/ports.js'
import { until } from '../until.js'
import { holdfast } from './holdfast.js'
import { manifestDirectory } from './kubelet.js'
import { TestNode } from './node.js'
import { unfit } from './requirements.js'
import { workloadImage } from './workload.js'

const reason = await unfit()
if (reason === undefined) await suite()
else t.plan(0, reason)

interface Outcome {
  readonly outcome: string
  readonly message: string
  readonly old: string
}

async function suite(): Promise<void> {
  // A refused file is skipped at the next list.
  const node = await TestNode.start(t, { fileCheckFrequency: '1s' })
  const { space, kubelet } = node
  const port = await freePort()
  const live = space.onDisk(`${manifestDirectory}/web.yaml`)
  const container = { name: 'web', image: workloadImage, imagePullPolicy: 'Never', args: ['serve', String(port)] }
  const pod = (more: object = {}, spec: object = {}): string =>
    `# web\n${JSON.stringify({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web', namespace: 'kube-system' },
      spec: { hostNetwork: true, terminationGracePeriodSeconds: 1, containers: [{ ...container, ...more }], ...spec },
    })}\n`
  const before = pod()
  const roll = (text: string, flags: readonly string[]) => {
    writeFileSync(space.onDisk('/etc/kubernetes/new.yaml'), text)
    const places = ['/etc/kubernetes/new.yaml', '--pod-manifest-dir', manifestDirectory, '-o', 'json']
    return holdfast(space, ['rollout', ...places, ...flags])
  }
  const byKubelet = [...kubelet.probeFlags(), '--timeout=40s', '--ready-for=1s']

  writeFileSync(live, before)
  await until(
    'the pod is ready',
    async () => {
      const conditions = (await kubelet.pod(`web-${node.name}`))?.status.conditions ?? []
      if (conditions.some(({ type, status }) => type === 'Ready' && status === 'True')) return true
      throw new Error(kubelet.tail(10))
    },
    { within: 180_000, every: 100 },
  )

  await t.test('a probe that cannot be run stops a rollout before anything changes', async (t) => {
    const text = pod({ env: [{ name: 'SAYS', value: 'new' }] })
    const elsewhere = kubelet.probeFlags().map((flag) => flag.replace('127.0.0.1', '127.0.0.2'))
    const cases: [string[], RegExp][] = [
      [['--ready-exec=/no/such/program'], /exit code 127.*nothing was changed/],
      [[`--ready-url=http://127.0.0.1:${port}/readyz`, '--ready-exec=etcdctl-not-here'], /exit code 127/],
      [[`--ready-url=http://127.0.0.1:${port}/none`], /HTTP 404; nothing was changed/],
      [[`--kubelet-url=http://127.0.0.1:${port}`], /kubelet: HTTP 404; nothing was changed/],
      [elsewhere, /kubelet: ERR_TLS_CERT_ALTNAME_INVALID.*nothing was changed/],
    ]
    for (const [flags, message] of cases) {
      t.match(await roll(text, flags), { code: 1, stderr: message })
      t.equal(readFileSync(live, 'utf8'), before)
    }
    t.equal(kubelet.kills(`kube-system/web-${node.name}`), 0)
  })

  const tcpSocket = { host: '127.0.0.1', port: 1 }
  const livenessProbe = { tcpSocket, initialDelaySeconds: 5, periodSeconds: 3, failureThreshold: 3 }
  const hostPath = { path: '/none/here', type: 'Directory' }
  const constraint = { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'Sometimes' }
  const broken: [string, string, RegExp, string[]?][] = [
    [
      'a crash loop',
      pod({ args: ['serve'] }),
      /container web: .*ended with exit code 1.*; the log of container web ends: workload: unknown arguments/,
    ],
    ['a missing image', pod({ image: 'holdfast.test/none:1' }), /container web: ErrImageNeverPull: .*none:1/],
    [
      'a missing hostPath',
      pod({ volumeMounts: [{ name: 'x', mountPath: '/x' }] }, { volumes: [{ name: 'x', hostPath }] }),
      /ContainerCreating.*hostPath\.path: \/none\/here does not exist/,
    ],
    [
      'a container that its liveness probe kills after 14 s',
      pod({ livenessProbe }),
      /started again|CrashLoopBackOff/,
      [...kubelet.probeFlags(), '--timeout=70s'],
    ],
    [
      'a manifest that kubelet refuses',
      pod({}, { topologySpreadConstraints: [constraint] }),
      /kubelet: it does not run the pod for 40 s: it has refused the manifest/,
      [...kubelet.probeFlags(), '--timeout=10m', '--ready-for=1s'],
    ],
  ]
  for (const [what, text, message, flags = byKubelet] of broken) {
    await t.test(`${what} is taken back, with the cause`, async (t) => {
      const { code, stdout, stderr } = await roll(text, flags)
      t.equal(code, 1, stderr)
      const said = JSON.parse(stdout || '{}') as Partial<Outcome>
      t.comment(JSON.stringify(said))
      t.match(said, { outcome: 'taken-back', message, old: 'web.yaml answers again' })
      t.equal(readFileSync(live, 'utf8'), before)
    })
  }
}
