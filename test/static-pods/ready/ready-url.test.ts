import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { urlProbe } from '../../../src/static-pods/ready/probe-url.js'
import { Authority, type KeyPair } from '../../e2e/authority.js'
import { SimulatedTime } from '../../simulated-time.js'
import { run } from '../command.js'
import { NodeDisk, podText, scratch } from '../pods.js'

const directory = scratch(t)
const authority = await Authority.create(join(directory, 'ours'))
const other = await Authority.create(join(directory, 'other'))
const manifest = {} as never
const { signal } = new AbortController()

/** A server that is ready at /readyz; answers its port. */
async function serve({ certificate, key }: KeyPair, address: string): Promise<number> {
  const server = createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (request, response) => {
    response.statusCode = request.url === '/readyz' ? 200 : 500
    // It goes on talking: what counts is the status.
    if (request.url === '/readyz') response.write('ok')
    else response.end('CANARY')
  })
  server.listen(0, address)
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** Its certificate is for 127.0.0.1 and localhost. */
const pair = await authority.server('server')
const port = await serve(pair, '127.0.0.1')

await t.test('urlProbe trusts a server by its authority and its name alone', async (t) => {
  // The five seconds of a question are nobody's here: a busy machine takes longer.
  new SimulatedTime(t)
  const ask = (url: string, ca: string | undefined) => urlProbe(new URL(url), ca).ask(manifest, signal)
  const good = authority.certificate
  t.same(await ask(`https://127.0.0.1:${port}/readyz`, good), { state: 'ready' })
  t.same(await ask(`https://localhost:${port}/readyz`, good), { state: 'ready' })
  t.same(await ask(`https://127.0.0.1:${port}/`, good), { state: 'not-ready', message: 'HTTP 500' })
  const refused = /UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER|SELF_SIGNED_CERT|CERT_SIGNATURE_FAILURE/
  for (const wrong of [other.certificate, undefined]) {
    t.match(await ask(`https://127.0.0.1:${port}/readyz`, wrong), { state: 'stranger', message: refused })
  }
  const elsewhere = await serve(pair, '127.0.0.2')
  t.match(
    await ask(`https://127.0.0.2:${elsewhere}/readyz`, good),
    { state: 'stranger', message: "ERR_TLS_CERT_ALTNAME_INVALID: the server's certificate is not for 127.0.0.2" },
    'a certificate for another name',
  )
  const client = await serve(await authority.client('nobody', 'x'), '127.0.0.1')
  t.match(await ask(`https://127.0.0.1:${client}/readyz`, good), { state: 'not-ready' }, "a client's certificate")
})

await t.test('urlProbe reads the authority at each try', async (t) => {
  new SimulatedTime(t)
  const file = join(directory, 'ca.crt')
  const probe = urlProbe(new URL(`https://127.0.0.1:${port}/readyz`), file)
  t.match(await probe.ask(manifest, signal), { state: 'cannot-ask', message: `could not read ${file}: ENOENT` })
  writeFileSync(file, readFileSync(other.certificate))
  t.match(await probe.ask(manifest, signal), { state: 'stranger' })
  writeFileSync(file, 'no certificate')
  t.match(await probe.ask(manifest, signal), { state: 'cannot-ask', message: /holds no certificate in PEM/ })
  writeFileSync(file, Buffer.concat([other.certificate, authority.certificate].map((one) => readFileSync(one))))
  t.same(await probe.ask(manifest, signal), { state: 'ready' }, 'one of several')
})

await t.test('monitor records with the right --ready-ca, and falls back with a wrong one', async (t) => {
  const node = new NodeDisk(t)
  for (const revision of [6, 7]) node.makeRevision(revision)
  const flags = [
    ...['monitor', '--ready-for=0s', '--revision=7', '--target-name=web', `--resource-dir=${node.resources}`],
    ...[`--manifests-dir=${node.manifests}`, `--ready-url=https://localhost:${port}/readyz`, '-o', 'json'],
  ]
  const monitored = async (ca: string, limit: string) => {
    node.makeManifest(podText({ labels: { revision: '7' } }))
    return run([...flags, `--ready-ca=${ca}`, `--fallback-timeout-duration=${limit}`])
  }
  const wrong = await monitored(other.certificate, '1ms')
  t.equal(wrong.code, 1, wrong.stderr)
  t.match(JSON.parse(wrong.stdout), {
    outcome: 'fell-back',
    to: 6,
    message: /^https:\/\/localhost:\d+\/readyz: [A-Z_]+$/,
  })
  const right = await monitored(authority.certificate, '5m')
  t.equal(right.code, 0, right.stderr)
  t.match(JSON.parse(right.stdout), { outcome: 'ready', revision: 7 })
  const plain = await run([...flags.slice(0, 6), '--ready-exec=true', `--ready-ca=${other.certificate}`])
  t.match(plain, { code: 2, stderr: /--ready-ca needs a --ready-url with https/ })
})

await t.test('monitor refuses an unreadable --ready-ca as wrong usage, and does not fall back', async (t) => {
  const file = join(directory, 'no-authority.pem')
  const args = ['monitor', '--revision=1', '--target-name=web', `--resource-dir=${directory}`]
  const flags = [...args, `--manifests-dir=${directory}`, '--ready-url=https://127.0.0.1:1/']
  const absent = await run([...flags, `--ready-ca=${file}`])
  t.match(absent, { code: 2, stdout: '', stderr: /--ready-ca: could not read .*no-authority\.pem: ENOENT/ })
  for (const content of ['no certificate', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n']) {
    writeFileSync(file, content)
    const wrong = await run([...flags, `--ready-ca=${file}`])
    t.match(wrong, { code: 2, stderr: /holds no certificate in PEM/ })
  }
})
