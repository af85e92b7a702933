/** How many calls of libc are under way at a time, by how many stacks koffi keeps for them. */
// Own process: koffi is changed before native/ is loaded.
import koffi from 'koffi'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { answer, type Answer } from './libc-calls.js'
import type * as libc from '../../native/libc.js'

/** The calls that start while all of them wait, and those that end: where the code sets koffi's stacks, and koffi answers so. */
async function callsAtATime(t: Test, name: string, config: (asked: unknown) => void): Promise<[number, number]> {
  const before = koffi.config
  Object.assign(koffi, { config })
  t.teardown(() => Object.assign(koffi, { config: before }))
  const { callAsync, declare } = (await import(`../../native/libc.js?${name}`)) as typeof libc
  const held: ((answer: Answer) => void)[] = []
  answer(t, { getppid: () => new Promise<Answer>((resolve) => held.push(resolve)) })
  const settled = async (): Promise<void> => {
    for (let turn = 0; turn < 20; turn++) await setImmediate()
  }
  const parent = declare('getppid', 'int', [])
  let ended = 0
  for (let call = 0; call < 40; call++) void callAsync(parent).finally(() => (ended += 1))
  await settled()
  const started = held.length
  while (held.length > 0) {
    for (const end of held.splice(0)) end(0)
    await settled()
  }
  return [started, ended]
}

await t.test('koffi keeps a stack for each of 32 calls, so that 32 run at a time', async (t) => {
  const asked: unknown[] = []
  t.strictSame(await callsAtATime(t, 'first', (one) => asked.push(one)), [32, 40])
  t.strictSame(asked, [{ resident_async_pools: 32 }])
})

await t.test(
  'koffi that another library has loaded keeps eight stacks, so that eight calls run at a time',
  async (t) => {
    const refuse = (): void => {
      throw new Error('Cannot change Koffi configuration once a library has been loaded')
    }
    t.strictSame(await callsAtATime(t, 'later', refuse), [8, 40])
  },
)
