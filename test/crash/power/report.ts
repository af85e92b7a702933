import type { Finding, Row } from './pipeline.js'

/** File system × scenario × states. */
export function table(rows: readonly Row[]): string {
  const cells = rows.map(({ fileSystem, scenario, runs, states, violations, seconds }) => [
    fileSystem,
    scenario,
    String(runs),
    String(states),
    String(violations),
    seconds.toFixed(1),
  ])
  const all = [['file system', 'scenario', 'runs', 'states', 'violations', 'seconds'], ...cells]
  const widths = [0, 1, 2, 3, 4, 5].map((column) => Math.max(...all.map((row) => row[column]?.length ?? 0)))
  const isText = (column: number): boolean => column < 2
  return all
    .map((row) =>
      row
        .map((cell, column) => (isText(column) ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

export function describeFinding({ fileSystem, scenario, problem, kept, violation, note }: Finding): string {
  const lines = [`VIOLATION ${fileSystem}, ${scenario}${note === undefined ? '' : ` (${note})`}: ${problem}`]
  if (violation) {
    const { number, state } = violation
    const torn = state.sectors === undefined ? '' : `, ${state.sectors} sectors of the last`
    lines.push(
      `  state ${number}: power cut before record ${state.cut}, all before ${state.certain} written, beyond it ` +
        `[${state.lucky.join(' ')}]${torn}`,
    )
  }
  return [...lines, `  examine it again: --replay ${kept}`].join('\n')
}
