import { objectName } from '../../object-name.js'
import { escaped } from '../../quote.js'
import type { RecordedObject } from '../../durable/types.js'

/** A cell; `paint` colours it after its width was measured. */
export interface Cell {
  readonly text: string
  readonly paint?: (text: string) => string
}

/** Lines of aligned columns, two spaces apart, without trailing blanks. */
export function table(rows: readonly (readonly (string | Cell)[])[]): string {
  const cells = rows.map((row) =>
    row.map((cell): Cell =>
      typeof cell === 'string' ? { text: escaped(cell) } : { ...cell, text: escaped(cell.text) },
    ),
  )
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
