import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { typescriptFiles, usedBy } from './docs/import-graph.js'
import { project } from './project.js'

/** A row of test/README.md: where sources that have no test of their own name are tested. */
interface Row {
  readonly sources: readonly string[]
  /** None: types and constants, which the compiler checks. */
  readonly tests: readonly string[]
}

/** `a/{b,c}.ts` is a/b.ts and a/c.ts. */
function expand(pattern: string): string[] {
  const [, before = '', names, after = ''] = /^(.*)\{(.*)\}(.*)$/.exec(pattern) ?? []
  return names === undefined ? [pattern] : names.split(',').map((name) => `${before}${name.trim()}${after}`)
}

const quoted = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].flatMap(([, path = '']) => expand(path))

/** All rows. */
export function testedRows(): Row[] {
  return readFileSync(join(project, 'test/README.md'), 'utf8')
    .split('\n')
    .flatMap((line) => {
      const [, first = '', second = ''] = /^\| +(`(?:src|native|torture)\/.*?) +\| +(.*?) +\|/.exec(line) ?? []
      return first === '' ? [] : [{ sources: quoted(first), tests: quoted(second) }]
    })
}

/** The test of the same name as a source, whether or not it exists. */
export function ownTest(source: string): string {
  return `test/${source.replace(/^src\//, '').replace(/\.ts$/, '')}.test.ts`
}

const users = new Map<string, string[]>()

function usersOf(source: string): readonly string[] {
  if (users.size === 0) {
    for (const file of ['src', 'native', 'torture', 'test'].flatMap(typescriptFiles)) {
      for (const used of usedBy(file)) users.set(used, [...(users.get(used) ?? []), file])
    }
  }
  return users.get(source) ?? []
}

/** The tests that use a source themselves, and those that have the name of a source which uses it. */
export function testsByImports(source: string): readonly string[] {
  const tests = usersOf(source).map((file) => (file.endsWith('.test.ts') ? file : ownTest(file)))
  return [...new Set(tests)].filter((test) => existsSync(join(project, test)))
}

const found = new Map<string, readonly string[]>()

/** The tests of a source: those of its row; or that of its name; or those by imports. */
export function testsOf(source: string): readonly string[] {
  const known = found.get(source)
  if (known) return known
  const row = testedRows().find(({ sources }) => sources.includes(source))
  const own = ownTest(source)
  const tests = row?.tests ?? (existsSync(join(project, own)) ? [own] : testsByImports(source))
  found.set(source, tests)
  return tests
}
