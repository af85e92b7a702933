/** A tree with more directories, and deeper ones, than the program may have descriptors. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { kept, scratch } from '../durable/scratch.js'
import { executable } from '../project.js'

/** The program, allowed so many descriptors. */
function limited(
  descriptors: number,
  args: readonly string[],
): { status: number | null; stdout: string; stderr: string } {
  const command = `ulimit -n ${descriptors}; exec "$0" "$@"`
  return spawnSync('bash', ['-c', command, process.execPath, executable, ...args], { encoding: 'utf8' })
}

function publishes(t: Test, target: string, from: string, descriptors: number, outcome: string): void {
  const { status, stdout, stderr } = limited(descriptors, ['replace', target, '--from', from])
  t.equal(status, 0, stderr)
  t.match(stdout, new RegExp(`^${outcome} `))
  t.notMatch(stderr, 'the next run retries')
}

await t.test('replace publishes more directories than it may open descriptors', async (t) => {
  const root = scratch(t)
  const [target, from] = [join(root, 'certs'), join(root, 'from')]
  const count = 110
  for (let index = 0; index < count; index++) {
    mkdirSync(join(from, `directory-${index}`), { recursive: true })
    writeFileSync(join(from, `directory-${index}`, 'file'), `${index}`)
  }
  publishes(t, target, from, 96, 'created')
  t.equal(readdirSync(target, { recursive: true }).length, 2 * count)
  publishes(t, target, from, 96, 'unchanged')
  for (const name of readdirSync(from)) writeFileSync(join(from, name, 'file'), 'new')
  publishes(t, target, from, 96, 'replaced')
  t.equal(readdirSync(target, { recursive: true }).length, 2 * count)
  t.same(kept(root), ['lock', 'record'])
})

await t.test('replace publishes a deeper tree than it may open descriptors', async (t) => {
  const root = scratch(t)
  const [target, from, small] = [join(root, 'certs'), join(root, 'from'), join(root, 'small')]
  const deepest = join(from, ...Array.from({ length: 110 }, (_, index) => `d${index % 10}`))
  mkdirSync(deepest, { recursive: true })
  mkdirSync(small)
  writeFileSync(join(deepest, 'file'), 'deep')
  writeFileSync(join(small, 'file'), 'small')
  publishes(t, target, from, 96, 'created')
  t.equal(readdirSync(target, { recursive: true }).length, 111)
  publishes(t, target, from, 96, 'unchanged')
  publishes(t, target, small, 96, 'replaced')
  t.same(readdirSync(target), ['file'])
  t.same(kept(root), ['lock', 'record'])
})
