/** The injected faults, and their breaches: scenario × call, one column for each fault. */
import type { Fault } from './judge.js'
import { errors, type CallResult } from './sweep.js'

const faults: readonly Fault[] = ['SIGKILL', ...errors]

export function tableOf(results: readonly CallResult[]): string[] {
  const rows = new Map<string, CallResult[]>()
  for (const result of results) {
    const { prepared, site } = result.job
    const key = `| ${prepared.scenario.name} | ${site.call} |`
    rows.set(key, [...(rows.get(key) ?? []), result])
  }
  const cell = (row: readonly CallResult[], fault: Fault): string => {
    const met = row.filter(({ job, wrong }) => job.fault === fault && wrong !== undefined)
    const broken = met.filter(({ wrong }) => (wrong ?? []).length > 0).length
    return broken > 0 ? `${met.length}, **${broken} broke**` : `${met.length}`
  }
  return [
    `| scenario | call | ${faults.join(' | ')} |`,
    `|---|---|${faults.map(() => '---').join('|')}|`,
    ...[...rows]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, row]) => `${key} ${faults.map((fault) => cell(row, fault)).join(' | ')} |`),
  ]
}
