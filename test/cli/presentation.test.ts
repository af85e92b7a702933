import t from 'tap'
import { painter, wantsColour } from '../../src/cli/output/colour.js'
import { Exit, exitCodeOf, exitCodeOfAll, UsageError } from '../../src/cli/words/exit-codes.js'
import {
  parseDirectoryMode,
  parseDurationFlag,
  parseFileMode,
  parseListen,
  parseOwner,
} from '../../src/cli/words/option-values.js'
import { createLogger, type logFormats, readableLine } from '../../src/cli/output/logger.js'
import { testIo } from './in-process.js'
import { statusText } from '../../src/cli/commands/status.js'
import { age, table } from '../../src/cli/output/table.js'
import { DurableWriteError } from '../../src/durable/errors.js'

const plain = painter(false)

await t.test('flags parse modes, owners, durations and addresses', async (t) => {
  t.strictSame(['0755', '710', '2750', '1777'].map(parseDirectoryMode), [0o755, 0o710, 0o2750, 0o1777])
  t.strictSame(['0600', '444'].map(parseFileMode), [0o600, 0o444])
  t.throws(() => parseDirectoryMode('4755'), { message: /at most 3777/ })
  for (const text of ['4755', '2755', '1777']) t.throws(() => parseFileMode(text), { message: /at most 0777/ })
  t.strictSame(parseOwner('0:99'), { uid: 0, gid: 99 })
  t.strictSame(['0', '500ms', '60s', '1m30s', '1.5h'].map(parseDurationFlag), [0, 500, 60_000, 90_000, 5_400_000])
  t.strictSame(
    ['2m0s', '.5s', '1.s', '1500µs', '2500us', '1ms1000000ns', '1ns'].map(parseDurationFlag),
    [120_000, 500, 1000, 2, 3, 2, 1],
  )
  const day = 24 * 3_600_000
  t.strictSame(['1d', '2d12h', '0.5d', '1d1s'].map(parseDurationFlag), [day, 2.5 * day, day / 2, day + 1000])
  t.strictSame(parseListen('[::1]:80'), { host: '::1', port: 80 })
  t.strictSame(parseListen(':80'), { host: '::', port: 80 })
  for (const text of ['', 's', '1', '-1s', 'd', '1h1d', '1d1', '25d', '1s ', '999999h'])
    t.throws(() => parseDurationFlag(text), text)
})

await t.test('table aligns columns by their visible width, and ages read as in kubectl', async (t) => {
  const red = painter(true)
  t.equal(
    table([
      ['A', 'B', 'C'],
      ['long', { text: 'x', paint: (text) => red('red', text) }, ''],
    ]),
    'A     B  C\nlong  \u001b[31mx\u001b[0m\n',
  )
  const now = new Date(10_000_000_000)
  const ago = (seconds: number) => age(new Date(now.getTime() - seconds * 1000), now)
  t.strictSame([0, 119, 120, 7199, 7200, 172_800].map(ago), ['0s', '119s', '2m', '119m', '2h', '2d'])
  t.equal(ago(-500), '0s', 'a clock that was set back')
})

await t.test('wantsColour colours terminals, and obeys FORCE_COLOR and NO_COLOR', async (t) => {
  t.equal(wantsColour({ isTTY: true }, {}), true)
  t.equal(wantsColour({ isTTY: false }, {}), false)
  t.equal(wantsColour({ isTTY: true }, { NO_COLOR: '1' }), false)
  t.equal(wantsColour({ isTTY: true }, { TERM: 'dumb' }), false)
  t.equal(wantsColour({ isTTY: false }, { FORCE_COLOR: '1', NO_COLOR: '1', TERM: 'dumb' }), true)
  t.equal(wantsColour({ isTTY: true }, { FORCE_COLOR: '0' }), false)
  t.equal(wantsColour({ isTTY: true }, { FORCE_COLOR: 'false' }), false)
  t.equal(wantsColour({ isTTY: false }, { FORCE_COLOR: '' }), false, 'empty counts as not set')
})

await t.test('the text log prints a line for people', async (t) => {
  const line = JSON.stringify({
    level: 'warn',
    time: '2026-01-01T12:34:56.789Z',
    reason: 'HookFailed',
    operation: 'publish /x',
    hook: 'h',
    objects: [],
    n: 1,
    msg: 'what happened',
  })
  t.equal(readableLine(line, plain), '12:34:56 WARN  HookFailed what happened hook=h n=1\n')
  t.equal(readableLine('no JSON', plain), 'no JSON')
})

await t.test("--log-format decides the log's form on every standard error", async (t) => {
  const logged = (logFormat: (typeof logFormats)[number], isTTY: boolean, env = {}) => {
    const { io, written } = testIo({ env })
    const terminal = { ...io, stderr: { ...io.stderr, isTTY } }
    createLogger(terminal, { logLevel: 'info', logFormat }).info({ path: '/x' }, 'the sentence')
    return written.stderr
  }
  const text = /^\d\d:\d\d:\d\d INFO {2}the sentence path=\/x\n$/
  t.match(JSON.parse(logged('json', true)), { level: 'info', msg: 'the sentence', path: '/x' })
  t.match(JSON.parse(logged('auto', false)), { level: 'info', msg: 'the sentence', path: '/x' })
  t.match(logged('text', false), text)
  t.match(logged('auto', true, { NO_COLOR: '1' }), text)
  t.match(logged('text', false, { FORCE_COLOR: '1' }), /\u001b\[32mINFO/)
})

await t.test("the log writes a line's fields in order, from the configured level on", async (t) => {
  const { io, written } = testIo()
  const log = createLogger(io, { logLevel: 'warn', logFormat: 'json' }, { node: 'n' })
  log.info({}, 'not shown')
  log.warn({ inode: 2n ** 60n, missing: undefined, nested: { size: 1n } }, 'the "sentence"\n')
  const time = '"time":"[^"]{23}Z"'
  const fields = '"node":"n","inode":1152921504606846976,"nested":{"size":1},"msg":"the \\\\"sentence\\\\"\\\\n"'
  t.match(written.stderr, new RegExp(`^{"level":"warn",${time},${fields}}\n$`))
  const silent = testIo()
  createLogger(silent.io, { logLevel: 'silent', logFormat: 'json' }).error({}, 'not shown')
  t.equal(silent.written.stderr, '')
})

await t.test('exitCodeOf maps each error, and exitCodeOfAll the gravest', async (t) => {
  const fault = (code: string, published: boolean, reason: 'Busy' | 'PublishFailed') =>
    new DurableWriteError('m', { code, syscall: 's', path: 'p', published, reason })
  const [failed, unknown, busy] = [
    fault('EIO', false, 'PublishFailed'),
    fault('EIO', true, 'PublishFailed'),
    fault('EAGAIN', false, 'Busy'),
  ]
  t.strictSame([failed, unknown, busy, new UsageError('u'), new Exit(4)].map(exitCodeOf), [1, 3, 75, 2, 4])
  t.equal(exitCodeOfAll([]), 0)
  t.equal(exitCodeOfAll([busy, busy]), 75)
  t.equal(exitCodeOfAll([busy, new UsageError('u')]), 2)
  t.equal(exitCodeOfAll([new UsageError('u'), failed]), 1)
  t.equal(exitCodeOfAll([busy, failed, unknown]), 3, 'unknown durability wins')
})

await t.test('statusText prints the table of status, and its notes below', async (t) => {
  const time = '2026-01-01T00:00:00.000Z'
  const directory = (path: string, published: 'True' | 'False', pendingHooks: string[]) => ({
    path,
    conditions: [
      {
        type: 'Published' as const,
        status: published,
        reason: published === 'True' ? ('Published' as const) : ('ObjectMissing' as const),
        message: published === 'True' ? 'fine' : 'Secret a/b is missing',
        lastTransitionTime: time,
      },
      {
        type: 'Fresh' as const,
        status: published,
        reason: 'Published' as const,
        message: 'm',
        lastTransitionTime: time,
      },
    ],
    objects: [],
    digest: published === 'True' ? `sha256:${'a'.repeat(64)}` : null,
    publishedAt: published === 'True' ? time : null,
    confirmedAt: null,
    pendingHooks,
  })
  const agent = { version: '1.0.0', node: '', pid: 1, startedAt: time, writtenAt: time }
  const about = {
    stateDirectory: '/s',
    running: true,
    configurationChanged: false,
    otherConfiguration: null,
    rollouts: [],
  }
  const document = {
    ...about,
    agent,
    directories: [directory('/a', 'True', ['h']), directory('/bb', 'False', [])],
    consumers: [],
  }
  const at = (minutes: number) => new Date(Date.parse(time) + minutes * 60_000)
  t.equal(
    statusText(document, at(3), plain),
    `PATH  PUBLISHED  FRESH  REASON         AGE  CONFIRMED  DIGEST
/a    True       True   Published      3m   never      sha256:aaaaaaaaaaaa
/bb   False      False  ObjectMissing  -    never      -

/a: the hook "h" has not run yet
/bb: Secret a/b is missing

agent 1.0.0, last reported 3m ago
`,
  )
  const operation = { state: 'waiting' as const, since: time, attempt: 1, nextTry: at(4).toISOString() }
  const operations = [
    { ...operation, name: 'publish /a' },
    { ...operation, name: 'afterPublish /a' },
    { ...operation, name: 'publish /bb', attempt: 2 },
  ]
  t.match(
    statusText({ ...document, operations }, at(3), plain),
    `/a: debounce or minInterval lets the agent publish what has changed in 60s
/a: the hook "h" has not run yet: hookInterval lets it run in 60s
/bb: Secret a/b is missing
/bb: the agent tries again in 60s
`,
  )
  t.notMatch(statusText({ ...document, operations }, at(5), plain), /lets|again/, 'what was to be is over')
  const changed = {
    ...document,
    configurationChanged: true,
    agent: { ...agent, configuration: { file: `/etc/${'a'.repeat(40)}`, digest: 'd' } },
  }
  const narrow = statusText(changed, at(3), plain, {}, 80)
  t.strictSame(
    narrow.split('\n').filter((line) => line.length > 80),
    [],
    'it fits the terminal',
  )
  t.match(narrow, 'has changed since the agent read\n  it: run')
  t.match(statusText(document, at(11), plain), /hangs: it last reported 11m ago/)
  const stopped = { ...document, agent: { ...agent, stoppedAt: time } }
  t.match(statusText(stopped, at(1), plain), /is not running: it ended in order 60s ago/)
})
