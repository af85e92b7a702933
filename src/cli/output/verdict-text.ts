import type { Device, Examination, Verdict } from '../../../torture/types.js'
import { table } from './table.js'

const headlines = {
  kept: 'KEPT: after each power cut, this disk held everything that it had acknowledged',
  lost: 'LOST: this disk has lost or damaged what it had acknowledged',
  none: 'NO VERDICT: no power cut with a write in flight has been examined',
} as const satisfies Record<Verdict['verdict'], string>

/** How many examinations are listed; the others are counted. */
const mostListed = 20

/** The text that an operator can send to the disk's vendor. */
export function verdictText(verdict: Verdict): string {
  const { run, examinations } = verdict
  const { disk } = run
  const uncounted = Object.entries(verdict.notCounted).filter(([, count]) => count > 0)
  const facts: string[][] = [
    ...disk.devices.map((device) => ['device', deviceText(device)]),
    ['file system', `${disk.fileSystem} on ${disk.source}, mounted at ${disk.mountPoint}`],
    ['mount options', disk.options.join(',')],
    ['kernel', run.kernel],
    ['holdfast', `${run.version}, run ${run.id}, since ${run.startedAt}`],
    ['power cuts', `${verdict.cuts} with a write in flight${uncounted.map(uncountedText).join('')}`],
    ['acknowledged', generations(verdict.acknowledged)],
    ['lost', generations(verdict.lost)],
    ['torn or mixed', `${verdict.torn}`],
  ]
  const listed = listedExaminations(examinations)
  const more = examinations.length + verdict.omitted - listed.length
  return [
    `${headlines[verdict.verdict]}\n`,
    verdict.unproven
      ? `Durability is not proven on ${disk.fileSystem}: what is lost may be lost by the file system, not by the disk.\n`
      : '',
    '\n',
    table(facts),
    listed.length === 0 ? '' : '\n',
    listed.length === 0
      ? ''
      : table([['TIME', 'OUTAGE', 'ACKNOWLEDGED', 'FOUND', 'RESULT'], ...listed.map(examinationRow)]),
    more > 0 ? `and ${more} more\n` : '',
  ].join('')
}

/** All that went wrong, and the last of the others. */
function listedExaminations(examinations: readonly Examination[]): Examination[] {
  return examinations.filter(({ result }, index) => result !== 'kept' || index >= examinations.length - mostListed)
}

const generations = (count: number): string => `${count} generation${count === 1 ? '' : 's'}`

const uncountedWords = {
  idle: 'with nothing in flight',
  orderly: 'after an orderly end',
  reset: 'by a reset',
  unknown: 'of which the witness had not heard all',
} as const satisfies Record<keyof Verdict['notCounted'], string>

function uncountedText([outage, count]: [string, number]): string {
  return `, ${count} ${uncountedWords[outage as keyof typeof uncountedWords]} not counted`
}

function deviceText({ name, vendor, model, firmware, bytes, writeCache }: Device): string {
  return [
    name,
    ...[vendor, model].filter((word) => word !== undefined),
    ...(firmware === undefined ? [] : [`firmware ${firmware}`]),
    ...(bytes === undefined ? [] : [`${(bytes / 1e9).toFixed(1)} GB`]),
    ...(writeCache === undefined ? [] : [`cache: ${writeCache}`]),
  ].join(', ')
}

function examinationRow({ at, outage, acknowledged, announced, found, result, lost }: Examination): string[] {
  const state = found.state === 'whole' ? `generation ${found.generation}` : found.state
  const problem = 'problem' in found ? `${result}: ${found.problem}` : result
  return [
    at,
    outage === 'power' ? 'power cut' : outage,
    announced > acknowledged ? `${acknowledged}, ${announced} in flight` : `${acknowledged}`,
    state,
    lost > 0 ? `${result}: ${generations(lost)}` : problem,
  ]
}
