/** The results as a table for a terminal. */
import type { Result } from './limits.js'

const head = ['file system', 'what', 'flushes', 'limit', 'ms', 'beside', 'flushes', 'ms', 'faster', 'limit', '']

/** Flushes and factors without needless decimals. */
function short(value: number): string {
  return value >= 10 || Number.isInteger(value) ? value.toFixed(0) : value.toFixed(1)
}

function factor(value: number): string {
  return `${value < 10 ? value.toFixed(2) : value.toFixed(1)}×`
}

function row(result: Result): string[] {
  const { fileSystem, what, comparedWith, ours, compared, limits } = result
  const flushLimit = limits.flushes ?? (limits.flushesRatio ?? Infinity) * compared.flushes
  return [
    fileSystem,
    what,
    short(ours.flushes),
    `≤ ${short(flushLimit)}`,
    ours.milliseconds.toFixed(0),
    comparedWith,
    short(compared.flushes),
    compared.milliseconds.toFixed(0),
    factor(compared.milliseconds / ours.milliseconds),
    `${limits.timeJudged ? '≥' : '~'} ${factor(1 / limits.timeRatio)}`,
    summary(result),
  ]
}

function summary({ failures, remarks }: Result): string {
  if (failures.length > 0) return 'FAIL'
  return remarks.length > 0 ? 'PASS, see below' : 'PASS'
}

const leftAligned = new Set([0, 1, 5, 10])

export function table(results: readonly Result[]): string {
  const rows = [head, ...results.map(row)]
  const widths = head.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)))
  const line = (cells: string[]): string =>
    cells
      .map((cell, column) => {
        const width = widths[column] ?? 0
        return leftAligned.has(column) ? cell.padEnd(width) : cell.padStart(width)
      })
      .join('  ')
      .trimEnd()
  return rows.map(line).join('\n')
}
