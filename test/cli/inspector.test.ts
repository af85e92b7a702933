/** SIGUSR1, with which Node opens its inspector to every user of the machine, opens nothing in any command and any form of the program. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { executable, project } from '../project.js'
import { NodeDisk, podText } from '../static-pods/pods.js'
import { until } from '../until.js'
import { holdfastProcess, Node, scratch } from './holdfast.js'

const run = promisify(execFile)

interface Seen {
  readonly signals: number
  readonly ports: readonly number[]
  readonly code: number | null
  readonly signal: string | null
  readonly output: string
}

/** Runs a program under SIGUSR1 from its start on: test/smoke/sigusr1.mjs. */
async function underSignals(
  ports: number,
  ready: RegExp,
  command: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<Seen> {
  const script = join(project, 'test/smoke/sigusr1.mjs')
  const options = { env: { PATH: process.env.PATH, ...env }, maxBuffer: 1 << 24 }
  const { stdout } = await run(process.execPath, [script, String(ports), ready.source, ...command], options)
  return JSON.parse(stdout) as Seen
}

/** Where the agent says that it serves its health. */
const healthPort = (output: string) => Number(/"port":(\d+)/.exec(output)?.[1])

function agentOf(t: Test, program: string): string[] {
  const node = new Node(t, [{ path: './certs', contents: [{ secret: 'serving-cert' }] }])
  node.put('Secret', 'serving-cert', { 'tls.crt': 'x' })
  return [process.execPath, program, 'agent', '--config', node.configuration]
}

const forms = {
  'separate files': join(project, 'bin/holdfast.js'),
  'the bundle': join(project, 'dist/program/bin/holdfast.js'),
}

for (const [form, program] of Object.entries(forms)) {
  await t.test(`the agent opens no inspector at SIGUSR1, from its start on (${form})`, async (t) => {
    const seen = await underSignals(1, /keeps 1 directory/, agentOf(t, program))
    t.match(seen, { code: null, signal: null }, seen.output)
    t.same(seen.ports, [healthPort(seen.output)], seen.output)
    t.ok(seen.signals > 20, `${seen.signals} signals`)
  })
}

await t.test('an agent that runs opens no inspector at SIGUSR1, not for an instant', async (t) => {
  const node = new Node(t, [{ path: './certs', contents: [{ secret: 'serving-cert' }] }])
  node.put('Secret', 'serving-cert', { 'tls.crt': 'x' })
  const agent = node.agentProcess()
  await agent.logged('Published')
  // The port may be shut again before a test looks: Node's own line stays.
  const lines = () => agent.text.match(/Debugger listening/g)?.length ?? 0
  const health = `${await agent.address()}/livez`
  for (let count = 0; count < 50; count++) {
    agent.signal('SIGUSR1')
    t.equal((await fetch(health, { headers: { connection: 'close' } })).status, 200)
  }
  t.equal(await agent.end('SIGTERM'), 0)
  t.equal(lines(), 0)
})

await t.test('no other long-running command opens an inspector at SIGUSR1', async (t) => {
  const directory = scratch(t)
  const node = new NodeDisk(t)
  node.makeRevision(7)
  node.makeManifest(podText({ labels: { revision: '7' } }))
  const never = ['--ready-exec', 'exit 1', '--log-level', 'debug']
  mkdirSync(join(directory, 'manifests'))
  writeFileSync(join(directory, 'web.yaml'), podText({ labels: { revision: '8' } }))
  const status = new Node(t, [{ path: './certs', contents: [{ secret: 'none', optional: true }] }])
  t.equal((await holdfastProcess(['sync', '--config', status.configuration])).code, 0)
  const commands: [ready: RegExp, args: string[], ports: number][] = [
    [/"port"/, ['witness', '--listen', '127.0.0.1:0', '--state', join(directory, 'state'), '-o', 'json'], 1],
    [/certs/, ['status', '--watch', '--config', status.configuration], 0],
    [
      /exit code 1/,
      [
        'monitor',
        '--revision=7',
        '--target-name=web',
        `--resource-dir=${node.resources}`,
        `--manifests-dir=${node.manifests}`,
        ...never,
      ],
      0,
    ],
    [
      /exit code 1/,
      ['rollout', join(directory, 'web.yaml'), '--pod-manifest-dir', join(directory, 'manifests'), ...never],
      0,
    ],
  ]
  for (const [ready, args, ports] of commands) {
    const seen = await underSignals(ports, ready, [process.execPath, executable, ...args])
    t.match(seen, { code: null, signal: null, ports: { length: ports } }, `${args[0]}: ${JSON.stringify(seen)}`)
  }
})

await t.test('the agent closes an inspector that NODE_OPTIONS opened before it serves', async (t) => {
  const seen = await underSignals(1, /keeps 1 directory/, agentOf(t, executable), { NODE_OPTIONS: '--inspect=0' })
  t.match(seen.output, /^Debugger listening on ws:/)
  t.same(seen.ports, [healthPort(seen.output)], seen.output)
})

await t.test('the agent closes an inspector that opens later, as at a signal that Node answers late', async (t) => {
  const preload = join(scratch(t), 'open.cjs')
  writeFileSync(preload, `process.once('SIGUSR2', () => require('node:inspector').open(0))`)
  const [program = '', ...args] = agentOf(t, executable)
  const child = spawn(program, ['--require', preload, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text))
  await until('the agent serves', () => log.includes('keeps 1 directory'))
  child.kill('SIGUSR2')
  const [, port] = await until('the inspector is open', () =>
    /^Debugger listening on ws:\/\/127\.0\.0\.1:(\d+)/m.exec(log),
  )
  const answers = () => fetch(`http://127.0.0.1:${port}/json/version`).then(({ ok }) => ok)
  await until('the inspector is closed', async () => !(await answers().catch(() => false)))
  t.match(await fetch(`http://127.0.0.1:${healthPort(log)}/livez`), { ok: true }, 'the agent goes on')
})

await t.test('a hook meets SIGUSR1 as any program does', async (t) => {
  const afterPublish = [{ exec: ['/bin/sh', '-c', 'kill -USR1 $$; sleep 60'] }]
  const node = new Node(t, [{ path: './certs', contents: [{ secret: 'serving-cert' }], afterPublish }])
  node.put('Secret', 'serving-cert', { 'tls.crt': 'x' })
  const { stdout, stderr } = await holdfastProcess(['sync', '--hooks', '--config', node.configuration])
  t.match(stdout + stderr, /ended by SIGUSR1/)
})

await t.test('the library leaves the signals of its program alone', async (t) => {
  const script = `
    const { replaceFile } = await import(process.argv[1])
    await replaceFile(process.argv[2], 'content')
    console.log(process.eventNames().filter((name) => String(name).startsWith('SIG')).length)`
  const library = join(project, 'dist/src/index.js')
  const words = ['--input-type=module', '--eval', script, library, join(scratch(t), 'file')]
  const { stdout } = await run(process.execPath, words, { env: { PATH: process.env.PATH } })
  t.equal(stdout, '0\n')
})
