import { readFileSync } from 'node:fs'
import { join } from 'node:path'
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
