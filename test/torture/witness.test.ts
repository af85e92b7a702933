/*
 * `holdfast witness` and `holdfast torture` beside each other, over TCP, in this process. What becomes of it when the power goes is
 * test/crash/torture/torture.test.ts.
 */
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import type { Verdict } from '../../torture/types.js'
import { holdfast } from '../cli/holdfast.js'
import { Pair } from './pair.js'

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

  const before = readFileSync(pair.state, 'utf8')
  const beside = ['witness', '--listen', '127.0.0.1:0', '--state', pair.state]
  t.match(await holdfast(beside), {
    code: 75,
    stderr: /another witness keeps its state in .*state\.json; nothing was changed; stop it/,
  })
  t.equal(readFileSync(pair.state, 'utf8'), before)

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

  await t.test('torture judges nothing in another directory', async (t) => {
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

  await t.test('the witness refuses another machine by its file', async (t) => {
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

await t.test('torture publishes nothing without a witness', async (t) => {
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

await t.test('a client without the key gets nothing, and keeps no node out', async (t) => {
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

  // An attacker between the two changes one character of a message.
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
