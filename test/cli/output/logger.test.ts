/** The log on standard error: the levels that journald reads from it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fstatSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { executable } from '../../project.js'
import { scratch } from '../holdfast.js'

/** What a pass writes to standard error; `journal` answers what JOURNAL_STREAM says, given the device and inode of that stream. */
async function linesOf(t: Test, format: string, journal: (stream: string) => string): Promise<string[]> {
  const root = scratch(t)
  const configuration = join(root, 'holdfast.yaml')
  const document = {
    ...{ apiVersion: 'holdfast.dev/v1alpha1', kind: 'AgentConfiguration', stateDirectory: join(root, 'state') },
    source: { namespace: 'demo', files: { path: root } },
    directories: [{ path: join(root, 'web'), contents: [{ secret: 'missing' }] }],
  }
  writeFileSync(configuration, JSON.stringify(document))
  writeFileSync(join(root, 'other.yaml'), JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: {} }))
  const file = join(root, 'log')
  const log = openSync(file, 'w')
  const { dev, ino } = fstatSync(log)
  const args = ['sync', '--config', configuration, '--timeout', '100ms', '--log-format', format, '--log-level', 'debug']
  const env = { PATH: process.env.PATH, JOURNAL_STREAM: journal(`${dev}:${ino}`) }
  const child = spawn(process.execPath, [executable, ...args], { env, stdio: ['ignore', 'ignore', log] })
  closeSync(log)
  await once(child, 'close')
  return readFileSync(file, 'utf8').trimEnd().split('\n')
}

const priorities: Readonly<Record<string, number>> = { error: 3, warn: 4, info: 6, debug: 7 }

await t.test('each line for the journal begins with the priority of its level', async (t) => {
  const lines = await linesOf(t, 'json', (stream) => stream)
  const levels = lines.map((line) => {
    const [, priority, text = ''] = /^<(\d)>(\{.*\})$/.exec(line) ?? []
    const { level } = JSON.parse(text) as { level: string }
    t.equal(Number(priority), priorities[level], line)
    return level
  })
  t.ok(new Set(levels).size > 1, `lines of several levels: ${levels.join()}`)
})

await t.test('readable lines for the journal begin with it, too', async (t) => {
  const lines = await linesOf(t, 'text', (stream) => stream)
  for (const line of lines) t.match(line, /^<[3-7]>\d\d:\d\d:\d\d (DEBUG|INFO|WARN|ERROR) /)
})

await t.test('a stream that is not the journal gets no priorities', async (t) => {
  for (const line of await linesOf(t, 'json', () => '8:1')) t.match(line, /^\{/)
  for (const line of await linesOf(t, 'json', () => '')) t.match(line, /^\{/)
})
