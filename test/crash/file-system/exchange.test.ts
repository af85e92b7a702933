/*
 * exchange(): both parents are synced once the two have changed places, and then something on that file system must still be
 * possible. Watched, and made to fail, by strace.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { scratch } from '../../durable/scratch.js'
import { distribution, environment } from '../syscalls/distribution.js'

const skip = spawnSync('strace', ['-V']).status === 0 ? false : 'needs strace'
const library = JSON.stringify(pathToFileURL(join(distribution, 'src/durable/index.js')).href)
const script = `
  const { exchange } = await import(${library})
  const [a, b] = process.argv.slice(1)
  const answer = await exchange(a, b).then(() => ({}), ({ code, published, message }) => ({ code, published, message }))
  process.stdout.write(JSON.stringify(answer))`

interface Watched {
  readonly answer: { code?: string; published?: boolean; message?: string }
  /** Calls on something in the test's own directory, in their order, such as `fsync left`. */
  readonly calls: readonly string[]
  readonly exchanged: boolean
}

function watch(t: Test, inject: readonly string[] = []): Watched {
  const root = scratch(t)
  const [a, b] = [join(root, 'left/a'), join(root, 'right/b')]
  for (const side of ['left', 'right']) mkdirSync(join(root, side))
  writeFileSync(a, 'a')
  writeFileSync(b, 'b')
  const log = join(root, 'strace.log')
  const watched = ['-e', 'trace=fsync,renameat2,unlink', ...inject.flatMap((fault) => ['-e', `inject=${fault}`])]
  const strace = ['-f', '-y', '-o', log, ...watched]
  const program = [process.execPath, '--input-type=module', '--eval', script, '--', a, b]
  const run = spawnSync('strace', [...strace, ...program], {
    // fsync by fsync, so that each is a line.
    env: { ...environment, HOLDFAST_AIO: 'off' },
    encoding: 'utf8',
  })
  const calls = [...readFileSync(log, 'latin1').matchAll(/^\d+ +(fsync|renameat2|unlink)\((.*)$/gm)]
    .map(([, call = '', rest = '']) => [call, /<[^>]*\/(left|right)>/.exec(rest)?.[1] ?? ''] as const)
    .filter(([call, side]) => call !== 'fsync' || side !== '')
    .map(([call, side]) => (call === 'fsync' ? `fsync ${side}` : call))
  t.equal(run.status, 0, run.stderr)
  return {
    answer: JSON.parse(run.stdout) as Watched['answer'],
    calls,
    exchanged: readFileSync(a, 'utf8') === 'b' && readFileSync(b, 'utf8') === 'a',
  }
}

await t.test('both parents, and then a mutation', { skip }, async (t) => {
  const { answer, calls, exchanged } = watch(t)
  t.same(answer, {})
  t.equal(exchanged, true)
  t.equal(calls[0], 'renameat2')
  t.same(calls.slice(1, 3).sort(), ['fsync left', 'fsync right'])
  t.same(calls.slice(3), ['unlink'])
})

for (const [call, published] of [
  ['renameat2', false],
  ['fsync', true],
  ['unlink', true],
] as const) {
  await t.test(`${call} fails: published ${published}`, { skip }, async (t) => {
    const { answer, exchanged } = watch(t, [`${call}:error=EIO:when=1`])
    t.match(answer, { code: 'EIO', published })
    t.equal(exchanged, published, 'and so it is')
  })
}
