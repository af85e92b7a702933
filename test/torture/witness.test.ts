/*
 * `holdfast witness` and `holdfast torture` beside each other, over TCP, in this process. What becomes of it when the power goes is
 * test/crash/torture/torture.test.ts.
 */
import { EventEmitter, once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { main } from '../../src/cli/main.js'
import type { LedgerState } from '../../src/torture/ledger.js'
import type { Verdict } from '../../src/torture/types.js'
import { holdfast, scratch, type Ended } from '../cli/holdfast.js'
import { testIo } from '../cli/in-process.js'
import { until } from '../until.js'

/** A command that runs until it is told to end. */
class Running {
  readonly #events = new EventEmitter()
  readonly #io = testIo({ events: this.#events })
  readonly ended: Promise<number>

  constructor(...args: string[]) {
    this.ended = main(args, this.#io.io)
  }

  get written(): { stdout: string; stderr: string } {
    return this.#io.written
  }

  async end(): Promise<Ended> {
    this.#events.emit('SIGTERM', 'SIGTERM')
    return { code: await this.ended, signal: null, ...this.written }
  }
}

class Pair {
  readonly directory: string
  readonly disk: string
  readonly state: string
  witness: Running | undefined
  port = 0

  constructor(readonly t: Test) {
    this.directory = scratch(t)
    this.disk = join(this.directory, 'disk')
    this.state = join(this.directory, 'state.json')
    mkdirSync(this.disk)
  }

  get keyFile(): string {
    return `${this.state}.key`
  }

  async startWitness(): Promise<void> {
    const witness = new Running('witness', '--listen', '127.0.0.1:0', '--state', this.state, '-o', 'json')
    this.witness = witness
    this.t.teardown(() => witness.end())
    const { stdout } = await until(
      'the witness listens',
      () => witness.written.stdout.endsWith('}\n') && witness.written,
    )
    this.port = (JSON.parse(stdout) as { address: { port: number } }).address.port
  }

  torture(...more: string[]): string[] {
    return ['torture', this.disk, '--witness', `127.0.0.1:${this.port}`, '--key-file', this.keyFile, ...more]
  }

  get ledger(): LedgerState {
    return JSON.parse(readFileSync(this.state, 'utf8')) as LedgerState
  }

  /** Publishes until so many generations are on the disk, and ends in good order. */
  async publish(generations: number): Promise<Ended> {
    const running = new Running(...this.torture('--log-level', 'debug', '-o', 'json'))
    const durable = (): boolean => running.written.stderr.split('is durable').length > generations
    await until(`${generations} generations`, () => durable())
    return running.end()
  }
}

await t.test('a node publishes before a witness, ends, and goes on', async (t) => {
  const pair = new Pair(t)
  await pair.startWitness()
  t.equal(statSync(pair.keyFile).mode & 0o777, 0o600, 'the key that was made')
  const key = readFileSync(pair.keyFile, 'utf8').trim()
  const elsewhere = pair.torture().map((word) => (word === pair.disk ? join(pair.disk, 'none') : word))
  t.match(await holdfast(elsewhere), { code: 1, stderr: /cannot find .*none: ENOENT; name a directory on the disk/ })
  const file = join(pair.directory, 'file')
  writeFileSync(file, '')
  const inFile = pair.torture().map((word) => (word === pair.disk ? file : word))
  t.match(await holdfast(inFile), { code: 1, stderr: /cannot make .*file\/holdfast-torture-\w+: ENOTDIR; nothing/ })
  const first = await pair.publish(3)
  t.equal(first.code, 0, first.stderr)
  const verdict = JSON.parse(first.stdout) as Verdict
  t.match(verdict, { verdict: 'none', cuts: 0, lost: 0, run: { directory: pair.disk, disk: { fileSystem: /./ } } })
  t.ok(verdict.acknowledged >= 3)
  t.same(
    readdirSync(pair.disk),
    [`holdfast-torture-${verdict.run.id}`],
    'a directory of its own, and nothing else in the one that was named',
  )
  const verified = await holdfast(pair.torture('--verify'))
  t.match(verified, { code: 1, stdout: /^NO VERDICT: /, stderr: /has not been off/ }, 'the machine was not off')

  const port = ['--listen', `127.0.0.1:${pair.port}`, '--state', join(pair.directory, 'second.json')]
  t.match(await holdfast(['witness', ...port]), {
    code: 1,
    stderr: /cannot listen on port \d+ of 127.0.0.1: EADDRINUSE/,
  })
  t.notOk(existsSync(join(pair.directory, 'second.json')), 'what cannot listen writes no state')

  // Another witness with the same file knows all that the first one knew.
  await pair.witness?.end()
  await pair.startWitness()
  const second = await pair.publish(1)
  const later = JSON.parse(second.stdout) as Verdict
  t.equal(later.run.id, verdict.run.id)
  t.ok(later.acknowledged > verdict.acknowledged)
  const said = [first, second, verified].flatMap(({ stdout, stderr }) => [stdout, stderr])
  t.notOk(
    [...said, JSON.stringify(pair.ledger)].some((text) => text.includes(key)),
    'nobody says the key',
  )

  await t.test('elsewhere nothing is judged', async (t) => {
    const other = join(pair.directory, 'other')
    mkdirSync(other)
    const [command = '', , ...rest] = pair.torture('--verify')
    t.match(await holdfast([command, other, ...rest]), {
      code: 1,
      stderr: /keeps a run in .*disk, not .*other.*nothing was judged/,
    })
    t.match(await holdfast([command, join(other, 'none'), ...rest]), { code: 1, stderr: /cannot find .*ENOENT/ })
    t.same(readdirSync(other), [])
  })

  await t.test('another machine, by the file of the witness', async (t) => {
    await pair.witness?.end()
    const { run, ...state } = pair.ledger
    writeFileSync(pair.state, JSON.stringify({ ...state, run: { ...run, machine: 'another' } }))
    await pair.startWitness()
    t.match(await holdfast(pair.torture('--verify')), { code: 1, stderr: /run of another machine/ })
  })

  await t.test('a damaged file of the witness leads nowhere else', async (t) => {
    await pair.witness?.end()
    const { run = verdict.run, ...state } = pair.ledger
    const good = { ...run, machine: verdict.run.machine }
    // Beside what the witness itself needs to write its file.
    const visible = () => readdirSync(pair.directory).filter((name) => !name.startsWith('.'))
    const before = [visible(), readdirSync(pair.disk, { recursive: true })]
    const damaged: object[] = [
      { run: { ...good, id: '/../../elsewhere' } },
      { run: { ...good, seed: 7 } },
      { run: good, place: '1/../../../elsewhere' },
      { run: good, announced: null },
    ]
    for (const change of damaged) {
      writeFileSync(pair.state, JSON.stringify({ ...state, ...change }))
      await pair.startWitness()
      t.match(await holdfast(pair.torture('--verify')), { code: 1, stderr: /file of the witness is damaged/ })
      await pair.witness?.end()
    }
    t.same([visible(), readdirSync(pair.disk, { recursive: true })], before, 'and nothing is touched')
  })
})

await t.test(
  'a witness that cannot write says so on both sides, and what it was told counts when it is told again',
  async (t) => {
    const pair = new Pair(t)
    await pair.startWitness()
    const refused = { code: 1, stderr: /the witness .* refuses: .*the state cannot be written: .*state.json/ }
    rmSync(pair.state)
    mkdirSync(pair.state)
    t.match(await holdfast(pair.torture()), refused)
    t.match(pair.witness?.written.stderr, /the state cannot be written: .*state.json/)
    t.same(readdirSync(pair.disk), [], 'no run has begun')
    rmdirSync(pair.state)
    t.match(await pair.publish(1), { code: 0 }, 'there is no run that was never written')

    await pair.witness?.end()
    const cut = { ...pair.ledger, session: { boot: 'another', ended: false } }
    writeFileSync(pair.state, JSON.stringify(cut))
    await pair.startWitness()
    rmSync(pair.state)
    mkdirSync(pair.state)
    t.match(await holdfast(pair.torture('--verify')), refused)
    rmdirSync(pair.state)
    t.match(await holdfast(pair.torture('--verify')), { code: 1, stderr: /after an outage \(idle\): kept/ })
    t.equal(pair.ledger.examinations.length, 1, 'once')
  },
)

await t.test('a key file that a crash has left empty', async (t) => {
  const pair = new Pair(t)
  writeFileSync(pair.keyFile, '', { mode: 0o600 })
  const started = await holdfast(['witness', '--listen', '127.0.0.1:0', '--state', pair.state])
  t.match(started, { code: 2, stderr: /state.json.key is empty: remove it, and the witness makes a new one/ })
})

await t.test('without a witness nothing is published', async (t) => {
  const pair = new Pair(t)
  const nobody = ['--witness', '127.0.0.1:1']
  const named = ['--key-file', join(pair.directory, 'key')]
  const usage = [
    [[pair.disk], /--witness HOST:PORT, --key-file FILE are missing: without a witness there is no verdict/],
    [[pair.disk, '--witness', 'x'], /It must be HOST:PORT/],
    [[pair.disk, '--witness', ':10809'], /It must be HOST:PORT/],
  ] as const
  for (const [args, stderr] of usage) t.match(await holdfast(['torture', ...args]), { code: 2, stderr })
  t.match(await holdfast(['witness']), { code: 2, stderr: /--state FILE is missing/ })
  t.match(await holdfast(['torture', pair.disk, ...nobody, ...named]), {
    code: 2,
    stderr: /cannot find the key file .*key: ENOENT; copy it from the witness/,
  })
  writeFileSync(join(pair.directory, 'key'), 'short', { mode: 0o600 })
  t.match(await holdfast(['torture', pair.disk, ...nobody, ...named]), { code: 2, stderr: /holds 5 characters/ })
  writeFileSync(join(pair.directory, 'key'), 'k'.repeat(40))
  chmodSync(join(pair.directory, 'key'), 0o640)
  t.match(await holdfast(['torture', pair.disk, ...nobody, ...named]), {
    code: 2,
    stderr: /mode 0640: others may read/,
  })
  chmodSync(join(pair.directory, 'key'), 0o600)
  const away = await holdfast(['torture', pair.disk, ...nobody, ...named])
  t.match(away, { code: 1, stderr: /no witness at 127.0.0.1:1: .*ECONNREFUSED.*Without a witness there is no verdict/ })
  t.same(readdirSync(pair.disk), [])

  writeFileSync(pair.state, 'something else')
  const other = await holdfast(['witness', '--listen', '127.0.0.1:0', '--state', pair.state])
  t.match(other, { code: 2, stderr: /state.json is no state of a witness/ })
  t.equal(readFileSync(pair.state, 'utf8'), 'something else')
  t.notOk(existsSync(pair.keyFile), 'and no key is made')
})

await t.test('a witness that goes away ends it, and says what was published', async (t) => {
  const pair = new Pair(t)
  await pair.startWitness()
  const running = new Running(...pair.torture('--log-level', 'debug'))
  await until('a generation', () => running.written.stderr.includes('is durable'))
  await pair.witness?.end()
  t.equal(await running.ended, 1)
  t.match(running.written.stderr, /does not answer.*nothing is published after generation \d+: start it again/)

  // The witness heard no end, as where the network fails; then the machine is restarted in good order.
  const { run } = pair.ledger
  const own = join(pair.disk, `holdfast-torture-${run?.id ?? ''}`)
  const mark = readdirSync(own).find((name) => name.startsWith('ended-')) ?? ''
  const [, boot = '', generation] = /^ended-([0-9a-f-]{36})-(\d+)$/.exec(mark) ?? []
  t.ok(Number(generation) >= pair.ledger.announced, `it leaves a mark: ${mark}`)
  const earlier = `${boot.startsWith('0') ? '1' : '0'}${boot.slice(1)}`
  if (mark !== '') renameSync(join(own, mark), join(own, mark.replace(boot, earlier)))
  writeFileSync(pair.state, JSON.stringify({ ...pair.ledger, session: { boot: earlier, ended: false } }))
  await pair.startWitness()
  const verified = await holdfast(pair.torture('--verify'))
  t.match(verified, { code: 1, stdout: /1 after an orderly end not counted/, stderr: /an outage \(orderly\): kept/ })
})

await t.test('who has no key gets nothing, and keeps nobody out', async (t) => {
  const pair = new Pair(t)
  await pair.startWitness()
  const open = async (say: string): Promise<string> => {
    const socket = connect({ port: pair.port, host: '127.0.0.1' })
    let heard = ''
    socket.on('data', (bytes: Buffer) => (heard += bytes.toString()))
    socket.on('error', () => undefined)
    const over = new Promise((resolve) => socket.once('close', resolve))
    await once(socket, 'connect')
    socket.write(say)
    await over
    return heard
  }
  const greeting = /^holdfast torture 1 witness [0-9a-f]{32}\n$/
  t.match(await open('GET / HTTP/1.1\r\n\r\n'), greeting, 'another protocol')
  t.match(await open('x'.repeat(2000)), greeting, 'no end of a line')
  t.match(await open(`holdfast torture 1 node ${'0'.repeat(32)}\n${'0'.repeat(64)}\n`), greeting, 'no proof of the key')
  const silent = Array.from({ length: 70 }, () => connect({ port: pair.port, host: '127.0.0.1' }))
  for (const socket of silent) socket.on('error', () => undefined)
  t.teardown(() => silent.forEach((socket) => socket.destroy()))
  await Promise.all(silent.map((socket) => once(socket, 'connect')))
  t.match(await pair.publish(1), { code: 0 }, 'beside 70 that say nothing')

  const wrong = join(pair.directory, 'wrong')
  writeFileSync(wrong, 'w'.repeat(40), { mode: 0o600 })
  const refused = await holdfast(['torture', pair.disk, '--witness', `127.0.0.1:${pair.port}`, '--key-file', wrong])
  t.match(refused, { code: 1, stderr: /the witness has another key; give both the same --key-file/ })
  t.match(pair.witness?.written.stderr ?? '', /refused 127.0.0.1: the node has another key/)
  t.notMatch(refused.stderr, /wwww/)

  // Somebody between the two changes one character of a message.
  const between = createServer((node: Socket) => {
    const witness = connect({ port: pair.port, host: '127.0.0.1' })
    let lines = 0
    node.on('data', (bytes: Buffer) => {
      const text = bytes.toString('latin1')
      lines += text.split('\n').length - 1
      witness.write(lines > 2 ? text.replace(/.\n/, (end) => (end.startsWith('A') ? 'B\n' : 'A\n')) : text, 'latin1')
    })
    witness.pipe(node)
    for (const socket of [node, witness]) socket.on('error', () => undefined)
  })
  between.listen(0, '127.0.0.1')
  await once(between, 'listening')
  t.teardown(() => between.close())
  const port = (between.address() as AddressInfo).port
  const changed = await holdfast(['torture', pair.disk, '--witness', `127.0.0.1:${port}`, '--key-file', pair.keyFile])
  t.match(changed, { code: 1, stderr: /does not answer/ })
  t.match(pair.witness?.written.stderr ?? '', /a message was changed on its way/)
})
