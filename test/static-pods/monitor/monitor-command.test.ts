/** The command `monitor` and its probes, as startup-monitor's users call them. */
import { once } from 'node:events'
import { mkdirSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { urlProbe } from '../../../src/static-pods/ready/probe-url.js'
import { execProbe } from '../../../src/static-pods/ready/probe-exec.js'
import { underGarbageCollection } from '../../collect-garbage.js'
import { begin, ended, run } from '../command.js'
import { podText } from '../pods.js'
import { installed, link, live } from './monitored-node.js'

const { signal } = new AbortController()

await t.test('a URL probe and a command probe answer by status and exit code', async (t) => {
  const server = createServer((request, response) => {
    response.statusCode = { '/ok': 204, '/moved': 302 }[request.url ?? ''] ?? 503
    response.end('CANARY')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const manifest = { revision: '7' } as never
  const url = (path: string) => urlProbe(new URL(`http://127.0.0.1:${port}${path}`), undefined).ask(manifest, signal)
  t.same(await url('/ok'), { state: 'ready' })
  t.same(await url('/moved'), { state: 'not-ready', message: 'HTTP 302' })
  t.match(await urlProbe(new URL('http://127.0.0.1:1'), undefined).ask(manifest, signal), {
    state: 'not-ready',
    message: 'ECONNREFUSED',
  })
  t.same(await execProbe('test "$REVISION" = 7').ask(manifest, signal), { state: 'ready' })
  t.same(await execProbe('echo CANARY; exit 3').ask(manifest, signal), {
    state: 'not-ready',
    message: 'exit code 3',
  })
  t.same(await execProbe('kill -9 $$').ask(manifest, signal), {
    state: 'not-ready',
    message: 'ended by SIGKILL',
  })
  t.same(await underGarbageCollection(execProbe('sleep 300', 300).ask(manifest, signal)), {
    state: 'not-ready',
    message: 'still running after 0.3 s',
  })
})

await t.test("monitor takes startup-monitor's flags, exit codes and log file", async (t) => {
  const node = installed(t)
  const log = join(node.root, 'monitor.log')
  const flags = [
    'monitor',
    '--ready-for=0s',
    '-v=2',
    '--revision=7',
    '--target-name=web',
    `--resource-dir=${node.resources}`,
    `--manifests-dir=${node.manifests}`,
    `--installer-lock-file=${node.lock}`,
    '--node-name=n1',
    `--log-file-path=${log}`,
  ]
  const failed = await run([...flags, '--fallback-timeout-duration=1ms', '--ready-exec', 'exit 1', '-o', 'json'])
  t.equal(failed.code, 1, failed.stderr)
  t.match(JSON.parse(failed.stdout), { outcome: 'fell-back', to: 6 })
  t.match(readFileSync(log, 'utf8'), /"msg":"the revision is not ready in time: fell back"/)
  node.makeManifest(podText({ labels: { revision: '7' } }))
  const good = await run([...flags, '--fallback-timeout-duration=5m', '--ready-exec', 'true', '--keep-own-manifest'])
  t.equal(good.code, 0, good.stderr)
  t.match(good.stdout, 'revision 7 is ready; the monitor recorded it as the last known good one')
  t.equal(statSync(link(node)).isFile(), true, 'the link leads to the manifest')
  const directory = join(node.root, 'x')
  mkdirSync(directory)
  const noLock = await run([...flags, '--ready-exec=true', `--installer-lock-file=${directory}`])
  t.match(noLock, { code: 1, stderr: /the lock .*x is a directory; nothing was changed; name a regular file/ })
})

await t.test('monitor waits without using the processor, and ends on SIGTERM', async (t) => {
  const node = installed(t)
  const child = begin([
    'monitor',
    '--ready-for=0s',
    '--revision=7',
    '--target-name=web',
    '--resource-dir',
    node.resources,
    '--manifests-dir',
    node.manifests,
    '--fallback-timeout-duration=5m',
    '--ready-exec',
    'exit 1',
  ])
  await once(child.stderr ?? child, 'data')
  const ticks = (): number => {
    const fields = readFileSync(`/proc/${child.pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
    return Number(fields[11]) + Number(fields[12])
  }
  const before = ticks()
  await new Promise((resolve) => setTimeout(resolve, 3000))
  // A monitor that asked again at once would take all of it.
  t.ok(ticks() - before < 150, `${ticks() - before} hundredths of a second in three seconds`)
  child.kill('SIGTERM')
  t.equal((await ended(child)).code, 143)
  t.equal(live(node).metadata.labels.revision, '7')
})
