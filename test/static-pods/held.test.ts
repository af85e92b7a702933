/** An operator's hold stops install and a fallback of monitor: the held manifest stays, and nothing else changes on the way there. */
import { existsSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { replaceFile, setHold } from '../../src/durable/index.js'
import { run } from './command.js'
import { installed, link } from './monitor/monitored-node.js'
import { NodeDisk, podText } from './pods.js'

const reason = { reason: 'INC-7', since: 0, until: null }

await t.test('monitor does not fall back over a held manifest, and leaves the last known good link', async (t) => {
  const node = installed(t)
  symlinkSync(join(node.revision(5), 'web-pod.yaml'), link(node))
  const text = podText({ labels: { revision: '7' } })
  await replaceFile(node.manifest(), `${text}\n`)
  await setHold(node.manifest(), reason)
  // Not intact: the fallback would take revision 6, and record it.
  writeFileSync(join(node.revision(5), 'web-pod.yaml'), '{')
  const places = [`--resource-dir=${node.resources}`, `--manifests-dir=${node.manifests}`]
  const monitor = ['monitor', '--revision=7', '--target-name=web', ...places, '--ready-exec=false']
  const { code, stderr } = await run([...monitor, '--fallback-timeout-duration=1ms'])
  t.equal(code, 1)
  t.match(stderr, /web-pod\.yaml is held since .*INC-7.*nothing was changed.*holdfast release/s)
  t.equal(readFileSync(node.manifest(), 'utf8'), `${text}\n`)
  t.equal(readlinkSync(link(node)), join(node.revision(5), 'web-pod.yaml'))
})

await t.test('install over a held manifest writes no revision', async (t) => {
  const node = new NodeDisk(t)
  node.makeManifest('')
  await replaceFile(node.manifest(), `${podText({ labels: { revision: '6' } })}\n`)
  await setHold(node.manifest(), reason)
  const source = join(node.root, 'web-pod.yaml')
  writeFileSync(source, podText())
  const places = [`--resource-dir=${node.resources}`, `--pod-manifest-dir=${node.manifests}`]
  const { code, stderr } = await run(['install', source, '--revision=7', ...places])
  t.equal(code, 1)
  t.match(stderr, /web-pod\.yaml is held since .*INC-7.*nothing was changed/s)
  t.notOk(existsSync(node.revision(7)), 'which no manifest would name')
  await setHold(node.manifest(), undefined)
  t.match(await run(['install', source, '--revision=7', ...places]), { code: 0 })
})
