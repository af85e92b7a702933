/** What a rollout makes of each answer of its probes; and one that exchanges the directory with its own probes' files, against a real TLS server that wants a client certificate. */
import dns from 'node:dns'
import { once } from 'node:events'
import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { ReadinessSettings } from '../../../src/static-pods/ready/readiness.js'
import { base64, kubeconfig } from '../../kubernetes/credentials/kubeconfig-text.js'
import { pki, probedNode } from '../ready/probed-node.js'
import { RolledNode } from './rolled-node.js'

/**
 * `files`: a URL and kubelet, whose files lie in the directory. The mirror pod, by a kubeconfig: `named`, which lies beside the
 * directory, and names files in it; `inline`, which lies in the directory, and holds all.
 */
const kinds = ['files', 'named', 'inline'] as const
type Kind = (typeof kinds)[number]

const named = { 'client-certificate': 'pki/client.crt', 'client-key': 'pki/client.key' }

async function scene(t: Test, kind: Kind) {
  const probed = await probedNode(t)
  const { node, next, origin, readiness } = probed
  const beside = join(node.root, 'admin.conf')
  const inline = (directory: string) => {
    const data = (name: string) => base64(readFileSync(join(directory, name), 'utf8'))
    const user = { 'client-certificate-data': data('client.crt'), 'client-key-data': data('client.key') }
    const text = kubeconfig({ server: origin, 'certificate-authority-data': data('ca.crt') }, user, 'kube-system')
    writeFileSync(join(directory, 'admin.conf'), text)
  }
  inline(node.pki)
  inline(next)
  writeFileSync(beside, kubeconfig({ server: origin, 'certificate-authority': 'pki/ca.crt' }, named, 'kube-system'))
  const path = kind === 'named' ? beside : join(node.pki, 'admin.conf')
  const mirrorPod = { kubeconfig: path, context: null, namespace: null, nodeName: 'n1' }
  const byApi: ReadinessSettings = { ...readiness, urls: [], authority: null, kubelet: null, mirrorPod }
  const own = kind === 'files' ? readiness : byApi
  return { ...probed, inline, request: (settings = own) => probed.request(settings) }
}

for (const kind of kinds) {
  await t.test(`${kind}: a rotation of the authority within the directory succeeds`, async (t) => {
    const { node, start, means, request, isOld } = await scene(t, kind)
    // The pods start again with the new directory, as the first watch begins.
    let started = false
    const onAsk = (): void => {
      if (!started) start()
      started = true
    }
    t.match(await node.rollout(await request(), () => 'ready', means(onAsk)), { outcome: 'ready' })
    t.notOk(isOld())
  })

  const asked = `${kind}: a probe presents the old credential to a server that still takes only old clients`
  await t.test(asked, async (t) => {
    const { node, means, request, isOld } = await scene(t, kind)
    t.match(await node.rollout(await request(), () => 'ready', means()), { outcome: 'ready' })
    t.notOk(isOld())
  })

  for (const lost of kind === 'inline' ? ['admin.conf'] : ['ca.crt', 'client.crt', 'client.key']) {
    await t.test(`${kind}: a rollout that loses ${lost} with the exchange goes back`, async (t) => {
      // Each waits for its timeout: at the same time.
      const tries = (kind === 'files' ? [false] : [false, true]).map(async (isBroken) => {
        const { node, next, means, request, isOld } = await scene(t, kind)
        if (isBroken) writeFileSync(join(next, lost), 'broken')
        else rmSync(join(next, lost))
        t.match(await node.rollout(await request(), () => 'ready', means()), {
          outcome: 'taken-back',
          message: new RegExp(lost.replace('.', '\\.')),
        })
        t.ok(isOld())
      })
      await Promise.all(tries)
    })
  }

  await t.test(`${kind}: a resume trusts and presents the old directory's files, and goes back without`, async (t) => {
    for (const isLost of [false, true]) {
      const { node, next, means, request, isOld } = await scene(t, kind)
      if (isLost) rmSync(join(next, kind === 'inline' ? 'admin.conf' : 'ca.crt'))
      const stop = new AbortController()
      const killed = { ...means(() => stop.abort(new Error('SIGTERM'))), signal: stop.signal }
      await t.rejects(
        node.rollout(await request(), () => 'ready', killed),
        /SIGTERM/,
      )
      t.notOk(isOld())
      const ended = await node.resume(() => 'ready', means())
      t.equal(ended.outcome, isLost ? 'taken-back' : 'ready', ended.message ?? 'without a message')
      t.equal(isOld(), isLost)
    }
  })

  await t.test(
    `${kind}: 401, 403 and an unknown authority refuse a rollout before any change; a server that is down does not`,
    async (t) => {
      const { node, next, answer, server, start, readiness, inline, means, request, isOld } = await scene(t, kind)
      const refuses = async (message: RegExp, settings?: ReadinessSettings) => {
        await t.rejects(
          node.rollout(await request(settings), () => 'ready', means()),
          message,
        )
        t.ok(isOld())
        t.same(node.versions(), { web: '1' })
      }
      const stranger = join(node.root, 'stranger')
      await pki(stranger, 'other')
      for (const status of [401, 403]) {
        answer.status = status
        if (kind === 'files') {
          await refuses(new RegExp(`HTTP ${status}; nothing was changed; allow`), { ...readiness, kubelet: null })
          const kubelet = new RegExp(`kubelet: HTTP ${status}.*nothing was changed; name with --kubelet-cert`)
          await refuses(kubelet, { ...readiness, urls: [] })
        } else await refuses(new RegExp(`mirror pod: HTTP ${status}.*; nothing was changed; `))
      }
      answer.status = 200
      if (kind === 'files') {
        const authority = join(stranger, 'ca.crt')
        await refuses(/nothing was changed; name with --ready-ca the authority/, { ...readiness, authority })
        const kubelet = readiness.kubelet && { ...readiness.kubelet, authority }
        await refuses(/nothing was changed; name with --kubelet-ca the authority/, { ...readiness, urls: [], kubelet })
        await refuses(/could not read .*none: ENOENT/, { ...readiness, authority: join(next, 'none') })
      } else {
        start(stranger)
        await refuses(/mirror pod: .*nothing was changed; name in the kubeconfig the authority/)
      }
      // The new directory brings the right files.
      start(next)
      t.match(await node.rollout(await request(), () => 'ready', means()), { outcome: 'ready' })
      t.notOk(isOld())
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
      await pki(next, 'other')
      inline(next)
      const outcome = await node.rollout(await request(), () => 'ready', means())
      t.match(outcome, { outcome: 'taken-back', message: /ECONNREFUSED/ })
    },
  )
}

await t.test('a kubeconfig through a link in its last part counts as one of the directory', async (t) => {
  const { node, means, request: own, isOld } = await scene(t, 'inline')
  const link = join(node.root, 'link.conf')
  symlinkSync('pki/admin.conf', link)
  const request = await own()
  const { mirrorPod } = request.readiness
  const linked = mirrorPod && { ...mirrorPod, kubeconfig: link }
  const asked = { ...request, readiness: { ...request.readiness, mirrorPod: linked } }
  t.match(await node.rollout(asked, () => 'ready', means()), { outcome: 'ready' }, 'the old credential is still known')
  t.notOk(isOld())
})

/** The probes of one command; `bad`: those that cannot be run. Each leaves the program's own message. */
await t.test('a rollout does not begin with a probe that cannot be run, and says what to do', async (t) => {
  const { node, means, request, readiness, isOld, origin, answer, server } = await scene(t, 'files')
  const { kubelet, authority } = readiness
  const other = join(node.root, 'no-program')
  writeFileSync(other, '#!/bin/sh\n', { mode: 0o644 })
  const elsewhere = origin.replace('127.0.0.1', '127.0.0.2')
  const only = { urls: [], authority: null, commands: [], kubelet: null, mirrorPod: null }
  const mirrorPodAt = (server: string, name: string) => {
    const config = join(node.root, name)
    writeFileSync(config, kubeconfig({ server, 'certificate-authority': 'pki/ca.crt' }, named, 'kube-system'))
    return { kubeconfig: config, context: null, namespace: null, nodeName: 'n1' }
  }
  // An empty label: no name server knows it, and none is asked.
  const nowhere = 'https://no..host:6443'
  const moved = kubelet && { ...kubelet, url: elsewhere }
  const cases: [ReadinessSettings, RegExp][] = [
    [{ ...only, commands: ['/no/such/program x'] }, /command: exit code 127.*; nothing was changed; .*PATH/],
    [{ ...only, commands: [other] }, /command: exit code 126.*; nothing was changed; /],
    [{ ...readiness, kubelet: null, commands: ['etcdctl-not-here'] }, /command: exit code 127/],
    [{ ...only, urls: [`${origin}/404`], authority }, /HTTP 404; nothing was changed; name a path/],
    [{ ...only, kubelet: moved }, /kubelet: ERR_TLS_CERT_ALTNAME_INVALID.*; nothing was changed; name/],
    [{ ...only, urls: [elsewhere], authority }, /ERR_TLS_CERT_ALTNAME_INVALID.*; nothing was changed; name/],
    [{ ...only, mirrorPod: mirrorPodAt(elsewhere, 'other.conf') }, /mirror pod: .*; nothing was changed; name/],
    [{ ...only, urls: [nowhere], authority }, /no\.\.host.*: ENOTFOUND; nothing was changed; name a host/],
    [{ ...only, kubelet: kubelet && { ...kubelet, url: nowhere } }, /kubelet: ENOTFOUND; nothing was changed; name/],
    [{ ...only, mirrorPod: mirrorPodAt(nowhere, 'nowhere.conf') }, /mirror pod: .*; nothing was changed; .*resolver/],
  ]
  for (const [settings, message] of cases) {
    await t.rejects(
      node.rollout(await request(settings), () => 'ready', means()),
      message,
    )
    t.ok(isOld())
    t.same([node.versions(), node.left()], [{ web: '1' }, []])
  }
  const asKubelet = async (status: number, body: string, more: Partial<ReadinessSettings> = {}) => {
    Object.assign(answer, { status, body })
    return node.rollout(await request({ ...only, kubelet, ...more }), () => 'ready', means())
  }
  await t.rejects(asKubelet(404, 'no'), /kubelet: HTTP 404; nothing was changed; name with --kubelet-url/)
  await t.rejects(asKubelet(200, '{}'), /kubelet: .*list of pods.*; nothing was changed; name with --kubelet-url/)
  const refusal = 'Authorization error (user=kubernetes-admin, verb=get, resource=nodes, subresource=proxy)'
  await t.rejects(asKubelet(500, refusal), /kubelet: HTTP 500.*; nothing was changed; name a second probe/)
  t.same([node.versions(), node.left()], [{ web: '1' }, []])
  // The API server is down: what a rollout is to mend.
  const down = { urls: ['https://127.0.0.1:1/readyz'], authority }
  t.match(await asKubelet(500, refusal, down), {
    outcome: 'taken-back',
    message: /HTTP 500.*ECONNREFUSED|ECONNREFUSED.*HTTP 500/,
  })
  await t.test('a name server that does not answer is no reason', async (t) => {
    const lookup = dns.lookup
    t.teardown(() => (dns.lookup = lookup))
    // The test's own name server would have to be the machine's.
    const silent = (host: string, ...rest: unknown[]): void => {
      const done = rest.at(-1) as (error: Error) => void
      if (host === 'silent.example') done(Object.assign(new Error('getaddrinfo EAI_AGAIN'), { code: 'EAI_AGAIN' }))
      else (lookup as (...args: unknown[]) => void)(host, ...rest)
    }
    dns.lookup = silent as typeof lookup
    const url = 'https://silent.example:6443'
    const silently: Partial<ReadinessSettings>[] = [
      { urls: [url], authority },
      { kubelet: kubelet && { ...kubelet, url } },
      { mirrorPod: mirrorPodAt(url, 'silent.conf') },
    ]
    for (const settings of silently) {
      const outcome = await node.rollout(await request({ ...only, ...settings }), () => 'ready', means())
      t.match(outcome, { outcome: 'taken-back', message: /EAI_AGAIN/ }, JSON.stringify(settings))
    }
  })
  server.closeAllConnections()
})

await t.test('every probe of a rollout counts: one that goes blind on the way proves no pod ready', async (t) => {
  const node = new RolledNode(t)
  const ready = { name: 'url', ask: () => Promise.resolve({ state: 'ready' } as const) }
  for (const state of ['cannot-ask', 'no-answer', 'server-error'] as const) {
    const blind = { name: 'blind', ask: () => Promise.resolve({ state, message: 'HTTP 503', advice: 'mend it' }) }
    const openProbes = (_: unknown, _files: unknown, isTrial: boolean) => Promise.resolve(isTrial ? [] : [ready, blind])
    const outcome = await node.rollout(await node.request(), () => 'ready', { openProbes })
    t.match(outcome, { outcome: 'taken-back', message: /blind: HTTP 503/ }, state)
    t.same(node.versions(), { web: '1' })
  }
})
