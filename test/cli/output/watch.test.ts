/** `status --watch`: shown again when the status file changes, until a signal. */
import { EventEmitter } from 'node:events'
import { mkdirSync } from 'node:fs'
import t, { type Test } from 'tap'
import { main } from '../../../src/cli/main.js'
import { replaceFile } from '../../../src/index.js'
import { SimulatedTime } from '../../simulated-time.js'
import { until } from '../../until.js'
import { holdfast, Node } from '../holdfast.js'
import { testIo } from '../in-process.js'

/** A status as an agent of this version leaves it at its end; `message` is what changes. */
function statusOf(path: string, message: string): string {
  const at = '2026-01-01T00:00:00.000Z'
  const condition = { type: 'Published', status: 'False', reason: 'NoSpace', message, lastTransitionTime: at }
  const directory = { path, conditions: [condition], objects: [], digest: null, pendingHooks: [] }
  const agent = { version: '0.1.0', node: 'n', pid: 1, startedAt: at, writtenAt: at, stoppedAt: at }
  return JSON.stringify({ agent, directories: [{ ...directory, publishedAt: null, confirmedAt: null }] })
}

/** Runs `status --watch` in this process. Its time stands still: only an event, never the look without one, shows a change. */
function watching(t: Test, isTTY: boolean, ...flags: string[]) {
  new SimulatedTime(t)
  const node = new Node(t, [{ path: 'disk/web', contents: [{ secret: 'web' }] }])
  mkdirSync(node.path('state'))
  const events = new EventEmitter()
  const { io, written } = testIo({ events })
  const state = { closed: false }
  const stdout = {
    isTTY,
    columns: undefined,
    write: io.stdout.write,
    get closed() {
      return state.closed
    },
  }
  return {
    put: (message: string) => replaceFile(node.path('state/status.json'), statusOf(node.path('disk/web'), message)),
    start: () => main(['status', '--watch', '--config', node.configuration, ...flags], { ...io, stdout }),
    told: (text: string | RegExp) =>
      until(String(text), () => (typeof text === 'string' ? written.stdout.includes(text) : text.test(written.stdout))),
    events,
    written,
    state,
  }
}

await t.test('status --watch prints each change as one more document, and SIGINT ends it', async (t) => {
  const { put, start, told, events, written } = watching(t, false, '-o', 'yaml')
  await put('first')
  const end = start()
  await told('path:')
  await put('second')
  await told(/---\n[\s\S]*path:/)
  events.emit('SIGINT', 'SIGINT')
  t.equal(await end, 130)
  t.equal(written.stderr, '')
  t.strictSame(events.eventNames(), [], 'no listener is left')
})

await t.test('status --watch redraws the table on a terminal, and ends with its reader', async (t) => {
  const { put, start, told, state, written } = watching(t, true)
  await put('first')
  const end = start()
  await told(/PATH[\s\S]*agent/)
  await put('second')
  await told(/PATH[\s\S]*\u001b\[2J\u001b\[HPATH/)
  state.closed = true
  await put('third')
  t.equal(await end, 0)
  t.ok(written.stdout.startsWith('\u001b[2J\u001b[HPATH'), 'the first, too')
})

await t.test('status --watch reports a missing status at once', async (t) => {
  const ended = await holdfast(['status', '--watch'])
  t.match(ended, { code: 1, stdout: '', stderr: /no status in/ })
})
