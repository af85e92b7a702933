/** The table of differences, as docs/static-pods.md has it. */
import { differences } from './differences.js'

export const page = 'docs/static-pods.md'
const heading = '## Differences from library-go, and why\n'

/** As prettier aligns it. */
function table(): string {
  const rows = [
    ['library-go', 'holdfast', 'why'],
    ...differences.map(({ libraryGo, holdfast, why }) => [libraryGo, holdfast, why]),
  ]
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  const lines = rows.map((row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`)
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`
  return [lines[0], rule, ...lines.slice(1)].join('\n')
}

/** The page with this table below its heading, in place of the old one. @throws Error without one */
export function withTable(text: string): string {
  const before = text.indexOf(heading)
  const begin = text.indexOf('| ', before)
  const end = text.indexOf('\n\n', begin)
  if (before < 0 || begin < 0 || end < 0) throw new Error(`${page} has no table below "${heading.trim()}"`)
  return text.slice(0, begin) + table() + text.slice(end)
}
