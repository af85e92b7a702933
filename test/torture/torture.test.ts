/** A node whose witness is out of reach, or cannot write. */
import { once } from 'node:events'
import { mkdirSync, readdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { begin, holdfast } from '../cli/holdfast.js'
import { until } from '../until.js'
import { Pair, Running } from './pair.js'

/** Once torture has left its mark, the machine is restarted in good order, of which the witness has heard nothing: it is in another boot. */
async function restarted(t: Test, pair: Pair): Promise<void> {
  const own = join(pair.disk, `holdfast-torture-${pair.ledger.run?.id ?? ''}`)
  const mark = await until('its mark', () => readdirSync(own).find((name) => name.startsWith('ended-')))
  await pair.witness?.end()
  const [, boot = '', generation] = /^ended-([0-9a-f-]{36})-(\d+)$/.exec(mark) ?? []
  t.ok(Number(generation) >= pair.ledger.announced, mark)
  const earlier = `${boot.startsWith('0') ? '1' : '0'}${boot.slice(1)}`
  renameSync(join(own, mark), join(own, mark.replace(boot, earlier)))
  writeFileSync(pair.state, JSON.stringify({ ...pair.ledger, session: { boot: earlier, ended: false } }))
  await pair.startWitness()
}

await t.test('a witness that goes away ends torture, which names the last published generation', async (t) => {
  const pair = new Pair(t)
  await pair.startWitness()
  const running = new Running(...pair.torture('--log-level', 'debug'))
  await until('a generation', () => running.written.stderr.includes('is durable'))
  await pair.witness?.end()
  t.equal(await running.ended, 1)
  t.match(running.written.stderr, /does not answer.*nothing is published after generation \d+: start it again/)

  // The witness heard no end, as where the network fails.
  await restarted(t, pair)
  const verified = await holdfast(pair.torture('--verify'))
  t.match(verified, { code: 1, stdout: /1 after an orderly end not counted/, stderr: /an outage \(orderly\): kept/ })
})

await t.test('a program killed without a network leaves a mark all the same', async (t) => {
  const pair = new Pair(t)
  await pair.startWitness()
  const child = begin(pair.torture('--log-level', 'debug'))
  let said = ''
  child.stderr?.on('data', (bytes: Buffer) => (said += bytes.toString()))
  await until('a generation', () => said.includes('is durable'))
  child.kill('SIGKILL')
  await once(child, 'close')
  await restarted(t, pair)
  t.match(await holdfast(pair.torture('--verify')), { code: 1, stderr: /an outage \(orderly\): kept/ })
})

await t.test('a witness that cannot write says so on both sides, and a repeated report counts', async (t) => {
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
})
