/** The fuzzer finds planted faults and passes no limit by; each reader holds for the kept inputs. `npm run fuzz` makes new ones. */
import t from 'tap'
import { decodeInput, encodeInput, readCorpus } from './corpus.js'
import { limits, runTarget, type Limits, type Run } from './run-target.js'
import { loadTarget, targetNames } from './targets/index.js'

function fuzz(fault: string, more: Partial<Limits> = {}, seed = 1): Promise<Run> {
  const asked = {
    target: `planted-${fault}`,
    seed,
    corpus: [Buffer.from('a')],
    time: Infinity,
    inputs: 20_000,
    findings: 1,
    go: undefined,
  }
  return runTarget(asked, { ...limits, ...more })
}

await t.test('coverage leads to a fault behind four bytes, and a seed draws the same run again', async (t) => {
  const run = await fuzz('deep', {}, 7)
  t.match(run.findings, [{ message: 'found' }])
  t.equal(run.findings[0]?.input.toString(), 'z0A!', 'without a byte that it does not need')
  // By chance alone, one of four thousand million inputs.
  t.ok(run.fresh.some((input) => input.toString().startsWith('z0')))
  const again = await fuzz('deep', {}, 7)
  t.same(again, run)
})

await t.test('what passes a limit of time, memory or stack is a finding, with its input', async (t) => {
  const kinds = [
    ['endless', { endless: 2_000 }, /^no end within 2000 ms$/],
    ['heap', { heap: 32, slowest: 60_000 }, /^more than 32 MiB of heap$/],
    ['slow', { slowest: 20 }, /^slower than 20 ms$/],
    ['stack', {}, /^RangeError: Maximum call stack size exceeded/],
  ] as const
  for (const [fault, limit, message] of kinds) {
    const { findings } = await fuzz(fault, limit)
    t.match(findings, [{ message }], fault)
    t.match(findings[0]?.input.toString('latin1'), /^z/, fault)
  }
})

await t.test('an input of any bytes is kept as it is', async (t) => {
  const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
  t.match(encodeInput(all), /^"[ -~]*"$/)
  t.same(decodeInput(encodeInput(all)), all)
})

for (const name of targetNames) {
  await t.test(`${name} holds for each kept input`, async (t) => {
    const kept = readCorpus(name)
    t.ok(kept.length > 1)
    const target = await loadTarget(name)
    for (const input of kept) {
      const read = (): Promise<unknown> => Promise.resolve(input).then(target.read)
      await t.resolves(read, encodeInput(input).slice(0, 80))
    }
    await target.close?.()
  })
}
