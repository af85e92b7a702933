/** The demo, as a reader of the README runs it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { asTyped } from '../../../src/cli/demo/tour.js'
import { replaceFile } from '../../../src/index.js'
import { executable } from '../../project.js'
import { until } from '../../until.js'
import { begin, ended, Node } from '../holdfast.js'

await t.test('the demo publishes, swaps an update in, and ends in order with Ctrl-C', async (t) => {
  const node = new Node(t, [])
  const directory = node.path('demo')
  const demo = begin(['demo', '--directory', directory])
  const end = ended(demo)
  let text = ''
  let interrupted = false
  demo.stdout?.on('data', (chunk: string) => {
    text += chunk
    if (!interrupted && text.includes('Ctrl-C ends the demo')) interrupted = demo.kill('SIGINT')
  })
  const { code, stdout } = await end
  t.equal(code, 0)
  t.match(stdout, /0600 +1 +\d+ +\d+ +tls\.key/)
  t.match(stdout, /The program read [1-9]\d* pairs of certificate and key meanwhile; 0 of them did not match/)
  t.equal(stdout.match(/^sha256:[0-9a-f]{64}$/gm)?.length, 2)
  t.equal(readFileSync(join(directory, 'node/web/tls/rotation'), 'utf8'), '2')
  t.notMatch(stdout, /PRIVATE KEY/)
  const { unproven } = await replaceFile(node.path('probe'), '')
  if (unproven) t.notMatch(stdout, /durable/, 'nothing is called durable where that is not proven')
  t.match(
    stdout,
    unproven ? /On the disk, \d+ ms after .*\. Durability is not proven here/ : /On the disk and durable, \d+ ms/,
  )
})

await t.test('the demo ends when its terminal is closed, and reloads at any other SIGHUP', async (t) => {
  const node = new Node(t, [])
  const directory = node.path('demo')
  const words = [process.execPath, executable, 'demo', '--directory', directory].map((word) => `"${word}"`)
  const started = `echo $$ > "${node.path('pid')}"; exec ${words.join(' ')}`
  // The shell around it passes the signal on, as a user's does, and tells how the demo ended.
  const command = `sh -c '${started}' & trap "kill -HUP $!" HUP; wait $!; wait $!; echo $? > "${node.path('code')}"`
  // script(1) gives it a terminal, which the kernel hangs up when script is killed.
  const terminal = spawn('script', ['-qec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'ignore'] })
  t.teardown(() => {
    terminal.kill('SIGKILL')
    const pid = node.read('pid')
    if (pid !== undefined && existsSync(`/proc/${pid.trim()}`)) process.kill(Number(pid), 'SIGKILL')
  })
  let text = ''
  terminal.stdout.on('data', (chunk: Buffer) => (text += String(chunk)))
  await until('the tour has come to its end', () => text.includes('Ctrl-C ends the demo') || undefined)
  const pid = Number(node.read('pid'))
  const target = join(directory, 'node/web/web.conf')
  rmSync(target)
  process.kill(pid, 'SIGHUP')
  await until('the agent has repaired it', () => existsSync(target) || undefined)
  const left = once(terminal, 'close')
  terminal.kill('SIGKILL')
  await left
  const code = await until('the demo has ended', () => node.read('code')?.trim() || undefined)
  t.equal(code, '129', 'by its signal: Node aborts where it ends by itself without its terminal')
  t.match(JSON.parse(readFileSync(join(directory, 'state/status.json'), 'utf8')), { agent: { stoppedAt: String } })
})

await t.test('the commands of the demo begin as its user began', async (t) => {
  t.equal(asTyped('/srv/holdfast/bin/holdfast.js'), 'node bin/holdfast.js')
  t.equal(asTyped('/srv/web/node_modules/.bin/holdfast'), 'npx holdfast')
  t.equal(asTyped('/usr/local/bin/holdfast'), 'holdfast')
})
