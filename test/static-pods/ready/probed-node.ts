/** A node whose pod, kubelet and API server are one real TLS server that wants a client certificate, and whose probes' files lie in the directory that a rollout exchanges. */
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { openProbes } from '../../../src/cli/words/readiness-options.js'
import { silent } from '../../../src/log.js'
import type { ReadinessSettings } from '../../../src/static-pods/ready/readiness.js'
import { readRolloutTree } from '../../../src/static-pods/rollout/rollout-tree.js'
import type { RolloutMeans } from '../../../src/static-pods/rollout/rollout.js'
import { Authority } from '../../e2e/authority.js'
import { openBelow } from '../../durable/scratch.js'
import { SimulatedTime } from '../../simulated-time.js'
import { until } from '../../until.js'
import { RolledNode } from '../rollout/rolled-node.js'

const names = ['ca.crt', 'client.crt', 'client.key', 'server.crt', 'server.key'] as const

/** What openssl made once for all tests of this process: of each authority, the files by their names. */
const made = new Map<string, Promise<readonly (readonly [name: string, content: Buffer])[]>>()

async function make() {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
  try {
    const authority = await Authority.create(directory)
    const [server, client] = [await authority.server('server'), await authority.client('client', 'admins')]
    const sources = [authority.certificate, client.certificate, client.key, server.certificate, server.key]
    return sources.map((source, index) => [names[index] ?? '', readFileSync(source)] as const)
  } finally {
    rmSync(directory, { recursive: true })
  }
}

/** A directory with an authority, a client's certificate and a server's: those of `which`, the same in each test. */
export async function pki(directory: string, which: 'old' | 'next' | 'other'): Promise<void> {
  const files = made.get(which) ?? make()
  made.set(which, files)
  mkdirSync(directory, { recursive: true })
  for (const [name, content] of await files)
    writeFileSync(join(directory, name), content, { mode: name.endsWith('.key') ? 0o600 : 0o644 })
}

/** It serves the content that its directory had at its last start. */
export async function probedNode(t: Test) {
  // The five seconds of a question are nobody's here: a busy machine takes longer.
  new SimulatedTime(t)
  const node = new RolledNode(t)
  // The timeout of a rollout may end a try while it reads its files.
  t.teardown(() => until('the last try has closed its files', () => openBelow(node.root).length === 0))
  rmSync(node.pki, { recursive: true })
  await pki(node.pki, 'old')
  const next = join(node.root, 'pki.next')
  await pki(next, 'next')
  const answer: { status: number; body?: string } = { status: 200 }
  const server = createServer({ requestCert: true, rejectUnauthorized: false }, (request, response) => {
    const isKnown = 'authorized' in request.socket && request.socket.authorized === true
    // A rollout keeps the comment above the JSON.
    const live = readFileSync(node.live(), 'utf8').replace(/^# .*\n/, '')
    const isPods = request.url === '/pods'
    const isMirrorPod = request.url === '/api/v1/namespaces/kube-system/pods/web-n1'
    response.statusCode = request.url === '/404' ? 404 : (isPods || isMirrorPod) && !isKnown ? 401 : answer.status
    const metadata = live.startsWith('{') ? (JSON.parse(live) as { metadata: object }).metadata : {}
    const annotations = {
      ...('annotations' in metadata ? (metadata.annotations as object) : {}),
      'kubernetes.io/config.source': 'file',
    }
    const pod = {
      metadata: { namespace: 'kube-system', ...metadata, name: 'web-n1', annotations },
      spec: { nodeName: 'n1' },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    }
    if (isMirrorPod) response.setHeader('content-type', 'application/json')
    const list = JSON.stringify({ kind: 'PodList', items: [pod] })
    response.end(isPods ? (answer.body ?? list) : isMirrorPod ? JSON.stringify(pod) : 'ok')
  })
  /** As a pod that starts: it reads its directory. `trusts`: whose clients it takes. */
  const start = (directory = node.pki, trusts = directory): void => {
    const read = (name: string, from = directory) => readFileSync(join(from, name))
    server.setSecureContext({ cert: read('server.crt'), key: read('server.key'), ca: read('ca.crt', trusts) })
  }
  start()
  server.listen(0, '0.0.0.0')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const file = (name: string) => join(node.pki, name)
  const readiness: ReadinessSettings = {
    urls: [`${origin}/readyz`],
    authority: file('ca.crt'),
    commands: [],
    kubelet: {
      url: origin,
      authority: file('ca.crt'),
      certificate: file('client.crt'),
      key: file('client.key'),
      tokenFile: null,
    },
    mirrorPod: null,
  }
  /** `onAsk`: called before each watch's answer, as the pods start again. */
  const means = (onAsk: () => void = () => {}): Partial<RolloutMeans> => ({
    openProbes: async (settings, files, isTrial) => {
      const { probes, apis } = await openProbes(settings, {}, silent, files)
      t.teardown(() => Promise.all(apis.map((api) => api.close())))
      if (isTrial) return probes
      return probes.map((probe) => ({
        ...probe,
        ask: (manifest, signal) => {
          onAsk()
          return probe.ask(manifest, signal)
        },
      }))
    },
    timing: { interval: 500 },
  })
  const request = async (settings: ReadinessSettings = readiness) => ({
    ...(await node.request({ readiness: settings, timeout: 2_000 })),
    tree: await readRolloutTree(next, node.pki, false),
  })
  const isOld = (ca: Buffer) => existsSync(file('ca.crt')) && ca.equals(readFileSync(file('ca.crt')))
  const old = readFileSync(file('ca.crt'))
  return { node, next, server, origin, start, answer, readiness, means, request, isOld: () => isOld(old) }
}
