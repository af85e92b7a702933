/** The machine's clock is set back by an hour: intervals go by a clock that does not step. */
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { SimulatedTime } from '../../simulated-time.js'
import { temporaryDirectory } from '../../kubernetes/connection/certificates.js'
import { once, start } from '../../kubernetes/connection/connected.js'
import { kubeconfig, loadKubeconfig } from '../../kubernetes/credentials/kubeconfig-text.js'

/** Milliseconds that are longer than each short interval below. */
const later = 60

const hour = 3_600_000

const cluster = { server: 'https://127.0.0.1:1' }

void t.test('access follows a changed token file and a changed kubeconfig', async (t) => {
  const time = new SimulatedTime(t)
  const directory = temporaryDirectory()
  t.teardown(directory.remove)
  const token = join(directory.path, 'token')
  writeFileSync(token, 'one')
  const timing = { look: 20 }
  const access = await loadKubeconfig(directory.path, kubeconfig(cluster, { tokenFile: 'token' }), { timing })
  t.match((await access.current()).headers, { authorization: 'Bearer one' })
  time.setBack(t, hour)
  writeFileSync(token, 'two, longer'.replace(', ', '-'))
  await time.advance(later)
  t.match((await access.current()).headers, { authorization: 'Bearer two-longer' })
  writeFileSync(join(directory.path, 'kubeconfig'), kubeconfig(cluster, { token: 'three' }))
  await time.advance(later)
  t.match((await access.current()).headers, { authorization: 'Bearer three' })
})

void t.test('access reads files again even if they seem unchanged', async (t) => {
  const time = new SimulatedTime(t)
  const directory = temporaryDirectory()
  t.teardown(directory.remove)
  const path = join(directory.path, 'kubeconfig')
  const timing = { look: 0, reread: 20 }
  const access = await loadKubeconfig(directory.path, kubeconfig(cluster, { token: 'one' }), { timing })
  const before = await access.current()
  time.setBack(t, hour)
  await time.advance(later)
  // An interval's fresh read answers the same access while its files are the same.
  t.equal(await access.current(), before)
  writeFileSync(path, kubeconfig(cluster, { token: 'two' }))
  await time.advance(later)
  t.match((await access.current()).headers, { authorization: 'Bearer two' })
})

/** A credential plugin whose credential lasts for so many milliseconds. */
function makePlugin(path: string, milliseconds: number) {
  const expirationTimestamp = new Date(Date.now() + milliseconds).toISOString()
  const apiVersion = 'client.authentication.k8s.io/v1'
  const output = JSON.stringify({ kind: 'ExecCredential', apiVersion, status: { token: 'x', expirationTimestamp } })
  writeFileSync(path, `#!/bin/sh\necho run >> ${path}.runs\necho '${output}'\n`)
  chmodSync(path, 0o755)
  const user = { exec: { apiVersion, command: path, interactiveMode: 'Never' } }
  const runs = () => (existsSync(`${path}.runs`) ? readFileSync(`${path}.runs`, 'utf8').trim().split('\n').length : 0)
  return { user, runs }
}

void t.test('a credential plugin runs again when its credential has expired', async (t) => {
  const time = new SimulatedTime(t)
  const directory = temporaryDirectory()
  t.teardown(directory.remove)
  const lifetime = 1_000
  const { user, runs } = makePlugin(join(directory.path, 'plugin'), lifetime)
  const access = await loadKubeconfig(directory.path, kubeconfig(cluster, user), {
    timing: { look: 0 },
    environment: { PATH: process.env['PATH'] },
  })
  await access.current()
  t.equal(runs(), 1)
  time.setBack(t, hour)
  await time.advance(lifetime + later)
  await access.current()
  t.equal(runs(), 2, 'by the time that has passed, not by what the clock says')
})

void t.test('a credential plugin runs again after a 401', async (t) => {
  const time = new SimulatedTime(t)
  const directory = temporaryDirectory()
  t.teardown(directory.remove)
  const { user, runs } = makePlugin(join(directory.path, 'plugin'), 7_200_000)
  const access = await loadKubeconfig(directory.path, kubeconfig(cluster, user), {
    timing: { look: 0, renew: 20 },
    environment: { PATH: process.env['PATH'] },
  })
  await access.renew(await access.current())
  const before = runs()
  time.setBack(t, hour)
  await time.advance(later)
  await access.renew(await access.current())
  t.equal(runs(), before + 1)
})

void t.test('the client closes an idle connection', async (t) => {
  const time = new SimulatedTime(t)
  const { api } = await start(t, {}, {}, { idle: 500, ping: 50 })
  await api.get('/', {}, once)
  // The clock steps while the connection is idle.
  await time.advance(later)
  t.equal(api.connections, 1)
  time.setBack(t, hour)
  await time.until('the connection is closed', () => api.connections === 0, 50, 5_000)
})
