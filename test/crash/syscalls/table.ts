/** What was injected, and what broke: scenario × call, one column for each fault. */
import type { Fault } from './judge.js'
import { errors, type Verdict } from './sweep.js'

const faults: readonly Fault[] = ['SIGKILL', ...errors]

export function tableOf(verdicts: readonly Verdict[]): string[] {
  const rows = new Map<string, Verdict[]>()
  for (const verdict of verdicts) {
    const { prepared, site } = verdict.job
    const key = `| ${prepared.scenario.name} | ${site.call} |`
    rows.set(key, [...(rows.get(key) ?? []), verdict])
  }
  const cell = (row: readonly Verdict[], fault: Fault): string => {
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
