/** A disk that is full leaves a part of a line; and a record has a bound, however many lines are added to it. */
import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { codeOf } from '../../src/errors.js'
import { hooks, isWhole, scene, without } from './record-scene.js'
import { scratch } from './scratch.js'

const needsRoot = process.geteuid?.() === 0 ? false : 'needs root (mount): run by CI'

/** Mounts a small file system. */
function mounted(t: Test, ...args: readonly string[]): string {
  const at = join(scratch(t), 'mounted')
  mkdirSync(at)
  execFileSync('mount', [...args, at])
  t.teardown(() => execFileSync('umount', [at]))
  return at
}

await t.test('a disk that is really full', { skip: needsRoot }, async (t) => {
  const parent = mounted(t, '-t', 'tmpfs', '-o', 'size=256k', 'tmpfs')
  const { recordPath, complete, pending, version, seenVersion } = await scene(parent)
  const ballast = join(parent, 'ballast')
  const fill = (): void => {
    try {
      for (;;) appendFileSync(ballast, Buffer.alloc(4096))
    } catch (error) {
      t.equal(codeOf(error), 'ENOSPC')
    }
  }
  fill()
  const done: string[] = []
  let refused: string | undefined
  for (const hook of hooks) {
    const answer = await complete(hook).catch(codeOf)
    if (answer === true) done.push(hook)
    else refused = String(answer)
    if (answer !== true) break
  }
  t.equal(refused, 'ENOSPC')
  t.ok(done.length > 0, `${done.length} lines found room in the last page`)
  t.strictSame(await pending(), without(...done))
  const { size } = statSync(recordPath())
  t.equal(size % 4096, 0, 'the last line was cut at the end of a page')
  t.notOk(isWhole(readFileSync(recordPath(), 'utf8')), 'the disk kept a part of it')
  t.equal(await version('9').catch(codeOf), 'ENOSPC')
  t.strictSame(await pending(), without(...done), 'a refused line costs none of the others')
  rmSync(ballast)
  t.equal(await version('9'), true)
  t.equal(await complete('hook 99'), true)
  t.strictSame(await pending(), without(...done, 'hook 99'))
  t.equal(await seenVersion(), '9')
})

await t.test('thousands of lines: the record keeps its bound, and says the same', async (t) => {
  const { recordPath, version, seenVersion, complete, pending, replace } = await scene(scratch(t))
  const first = readFileSync(recordPath(), 'utf8').indexOf('\n') + 1
  let most = 0
  for (let index = 1; index <= 1200; index++) {
    if (!(await version(`${index}`))) t.fail(`version ${index}`)
    most = Math.max(most, statSync(recordPath()).size)
    if (index === 100 && !(await complete('hook 5'))) t.fail('hook 5')
  }
  t.ok(most <= 2 * first + 64 * 1024, `${most} bytes at most; its first line has ${first}`)
  t.equal(await seenVersion(), '1200')
  t.strictSame(await pending(), without('hook 5'))
  t.match(await replace(), { outcome: 'unchanged' }, 'it is still known to be durable')
})
