import { escaped, objectName } from '../../message-text.js'
import { wrapWords } from './help-text.js'
import type { RecordedObject } from '../../durable/types.js'

/** A cell; `paint` colours it after its width was measured. */
export interface Cell {
  readonly text: string
  readonly paint?: (text: string) => string
}

/** The last column gets at least so many characters, or is not wrapped. */
const narrowest = 24

/** Lines of aligned columns, two spaces apart, without trailing blanks. `columns`: the last cell of a row is wrapped between words to fit. */
export function table(rows: readonly (readonly (string | Cell)[])[], columns?: number): string {
  const given = rows.map((row) =>
    row.map((cell): Cell =>
      typeof cell === 'string' ? { text: escaped(cell) } : { ...cell, text: escaped(cell.text) },
    ),
  )
  const cells = columns === undefined ? given : wrappedRows(given, columns)
  const widths: number[] = []
  for (const row of cells) {
    row.forEach(({ text }, column) => (widths[column] = Math.max(widths[column] ?? 0, text.length)))
  }
  const lines = cells.map((row) =>
    row
      .map(({ text, paint }, column) => {
        const blanks = column === row.length - 1 ? '' : ' '.repeat((widths[column] ?? 0) - text.length)
        return (paint ? paint(text) : text) + blanks
      })
      .join('  ')
      .trimEnd(),
  )
  return lines.map((line) => `${line}\n`).join('')
}

function wrappedRows(rows: readonly (readonly Cell[])[], columns: number): Cell[][] {
  const last = Math.max(...rows.map((row) => row.length)) - 1
  const before = Array.from({ length: last }, (_, column) =>
    Math.max(...rows.map((row) => row[column]?.text.length ?? 0)),
  )
  const width = columns - before.reduce((sum, one) => sum + one + 2, 0)
  if (width < narrowest) return rows.map((row) => [...row])
  return rows.flatMap((row) => {
    const cell = row[last]
    const [first = '', ...more] = wrapWords(cell?.text ?? '', width)
    if (cell === undefined || more.length === 0) return [[...row]]
    const blank = row.slice(0, last).map(() => ({ text: '' }))
    return [[...row.slice(0, last), { ...cell, text: first }], ...more.map((text) => [...blank, { ...cell, text }])]
  })
}

/** A path of at most `width` characters: its middle goes first, since the root and the name tell most. */
export function shortPath(path: string, width: number): string {
  if (path.length <= width) return path
  const kept = width - '...'.length
  return path.slice(0, Math.floor(kept / 2)) + '...' + path.slice(path.length - Math.ceil(kept / 2))
}

/** `Secret demo/web@123`. Leaves out a file's version, a long text without meaning for people. */
export function objectText(object: Pick<RecordedObject, 'kind' | 'namespace' | 'name' | 'resourceVersion'>): string {
  const { resourceVersion } = object
  return `${objectName(object)}${resourceVersion.startsWith('file:') ? '' : `@${resourceVersion}`}`
}

/** Enough of a digest to tell it from others. */
export function shortDigest(digest: string): string {
  return digest.slice(0, 'sha256:'.length + 12)
}

/** `3s`, `5m`, `7h`, `12d`, as kubectl prints ages. A time that is yet to come (a clock that was set back) is `0s`. */
export function age(from: Date, now: Date): string {
  const seconds = Math.max(0, Math.floor((now.getTime() - from.getTime()) / 1000))
  if (seconds < 120) return `${seconds}s`
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)}h`
  return `${Math.floor(seconds / 86_400)}d`
}
