/** The table of differences, as docs/library-go.md has it. */
import { markdownTable } from '../docs/markdown-table.js'
import { differences } from './differences.js'

export const page = 'docs/library-go.md'
const heading = '## Differences, and why\n'

function table(): string {
  return markdownTable([
    ['library-go', 'holdfast', 'why'],
    ...differences.map(({ libraryGo, holdfast, why }) => [libraryGo, holdfast, why]),
  ])
}

/** The page with this table below its heading, in place of the old one. @throws Error without one */
export function withTable(text: string): string {
  const before = text.indexOf(heading)
  const begin = text.indexOf('| ', before)
  const end = text.indexOf('\n\n', begin)
  if (before < 0 || begin < 0 || end < 0) throw new Error(`${page} has no table below "${heading.trim()}"`)
  return text.slice(0, begin) + table() + text.slice(end)
}
