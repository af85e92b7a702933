/** All targets of a batch that come to the same step share one read of the table of mounts; the next step reads it again. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { clock } from '../../../src/clock.js'
import { AtOnceFileSystem } from '../../../src/durable/posix/at-once.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { mounts } from '../../../src/mountinfo.js'
import { scratch } from '../scratch.js'
import { replaceCall } from '../system-calls.js'

/** A directory, the mounts below it by the kernel's word, and a clock that only the test moves. */
async function scene(t: Test, fs: NodeFileSystem) {
  const root = scratch(t)
  for (const name of ['a', 'b']) mkdirSync(join(root, name))
  const directory = await fs.openPath(root)
  t.teardown(() => fs.close(directory))
  let mounted: string[] = []
  let read = 0
  replaceCall(t, 'readFileSync', (real) => (path, ...rest) => {
    if (path !== '/proc/self/mountinfo') return real(path, ...rest)
    read += 1
    return mounted.map((name, at) => `${at + 1} 1 0:9 / ${join(root, name)} rw - tmpfs t rw\n`).join('')
  })
  let now = clock.now() + 10_000
  t.intercept(clock, 'now', { value: () => now })
  return {
    directory,
    mount: (...names: string[]) => void (mounted = names),
    later: (milliseconds: number) => void (now += milliseconds),
    below: () => fs.mountsBelow(directory),
    reads: () => read,
  }
}

for (const Kind of [NodeFileSystem, AtOnceFileSystem]) {
  await t.test(`${Kind.name}: one reading serves a millisecond, and no look after a rename or a barrier`, async (t) => {
    const fs = new Kind()
    const { directory, mount, later, below, reads } = await scene(t, fs)
    t.strictSame(await below(), [])
    mount('m')
    t.strictSame([await below(), mounts().length, reads()], [[], 0, 1], 'the other targets of the same step')
    later(0.9)
    t.strictSame([await below(), reads()], [[], 1])
    later(0.1)
    t.strictSame([await below(), reads()], [['m'], 2])
    mount('m', 'n')
    await fs.rename(directory, 'a', directory, 'b', 'exchange')
    t.strictSame([await below(), reads()], [['m', 'n'], 3], 'what has come before the exchange')
    mount('n')
    await fs.sync([directory])
    t.strictSame([await below(), reads()], [['n'], 4], 'what has come before the barrier ended')
    mount('o')
    later(1)
    const syncing = fs.sync([directory])
    t.strictSame(await below(), ['o'], 'while it is under way')
    mount('p')
    await syncing
    t.strictSame(await below(), ['p'], 'that look was another step’s own')
  })
}
