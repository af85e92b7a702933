import type { Finding, Status } from '../check/findings.js'
import type { CheckCommandOptions } from './check.js'
import { painter, wantsColour, type Colour, type Paint } from './colour.js'
import { Exit, exitCodes } from './exit-codes.js'
import { interruptible } from './interruptible.js'
import { loadWithFlags, nodeName } from './load.js'
import { print, printJson } from './print.js'
import { table, type Cell } from './table.js'
import { version } from './version.js'

/** Milliseconds to wait for a publication that goes on at a target in this moment. */
const lockTimeout = 5_000

export async function runCheck(options: CheckCommandOptions): Promise<void> {
  const configuration = await loadWithFlags(options)
  const { checkNode } = await import('../check/check.js')
  const findings = await interruptible((signal) =>
    checkNode(configuration, {
      version: version(),
      nodeName: nodeName(options),
      timeout: options.timeout,
      lockTimeout,
      signal,
    }),
  )
  const count = (status: Status) => findings.filter((finding) => finding.status === status).length
  const [faults, warnings] = [count('FAULT'), count('WARN')]
  if (options.output === 'json') printJson({ checks: findings, faults, warnings })
  else print(checkText(findings, painter(wantsColour(process.stdout))))
  if (faults > 0) throw new Exit(exitCodes.fault)
}

const colours: Readonly<Record<Status, Colour>> = { OK: 'green', WARN: 'yellow', FAULT: 'red' }

/** The table, what to do on a line of its own, and what it comes to. */
export function checkText(findings: readonly Finding[], paint: Paint): string {
  const rows: (string | Cell)[][] = [['SUBJECT', 'CHECK', 'STATUS', 'FOUND']]
  let last = ''
  for (const { subject, check, status, found, advice } of findings) {
    const colour = colours[status]
    const cell = { text: status, paint: (text: string) => paint(colour, text) }
    rows.push([subject === last ? '' : subject, check, cell, found])
    if (advice !== null) rows.push(['', '', '', { text: `→ ${advice}`, paint: (text) => paint('bold', text) }])
    last = subject
  }
  const count = (status: Status) => findings.filter((finding) => finding.status === status).length
  const [faults, warnings] = [count('FAULT'), count('WARN')]
  const told = `${plural(faults, 'fault')}, ${plural(warnings, 'warning')}`
  const verdict =
    faults > 0
      ? paint('red', `this node is not fit: ${told}`)
      : paint(warnings > 0 ? 'yellow' : 'green', `this node is fit: ${told}`)
  return `${table(rows)}\n${verdict}\n`
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
