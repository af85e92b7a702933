/** Targets of a batch that are one directory, by any paths. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { OverlappingTargets } from '../../src/durable/errors.js'
import { replaceDirectories } from '../../src/durable/index.js'
import { scratch } from './scratch.js'

const isRoot = process.getuid?.() === 0

await t.test(
  'one directory by two paths, one of them through a bind mount',
  { skip: isRoot ? false : 'mounting needs root: run by CI' },
  async (t) => {
    const root = scratch(t)
    const [is, was] = [join(root, 'is'), join(root, 'was')]
    for (const directory of [is, was]) mkdirSync(directory)
    execFileSync('mount', ['--bind', is, was])
    t.teardown(() => execFileSync('umount', [was]))
    const published = (...targets: string[]): Promise<unknown> =>
      replaceDirectories(targets.map((target) => ({ target, files: { a: target }, lockTimeout: 50 }))).then(
        (results) => results.map((result) => ('error' in result ? 'failed' : result.outcome)),
        (error: unknown) => (error instanceof OverlappingTargets ? [...error.paths].sort() : 'broken'),
      )
    const same = [join(is, 'a'), join(was, 'a')]
    t.strictSame(await published(...same), same)
    t.strictSame(await published(join(is, 'a'), join(root, 'b'), join(was, 'a')), same)
    t.strictSame(readdirSync(is), [], 'nothing is made')
    t.strictSame(await published(join(is, 'a'), join(was, 'b')), ['created', 'created'])
  },
)
