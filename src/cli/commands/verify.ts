import type { DirectoryConfiguration } from '../../config/types.js'
import type { Publication } from '../../durable/types.js'
import { painter, wantsColour, type Paint } from '../output/colour.js'
import { print } from '../output/print.js'
import { Exit, exitCodes } from '../words/exit-codes.js'
import { loadForLooking } from '../content/load.js'
import { selected } from '../content/select.js'
import type { Io } from '../output/io.js'
import { table, type Cell } from '../output/table.js'
import { command } from '../words/command.js'
import type { FlagsOf } from '../words/types.js'
import { pathReportFlags, headersFlag, configInputFlag } from '../words/options.js'

/** The result of comparing a directory. Everything but `ok` and `nothing` is a fault. */
type State = 'ok' | 'differs' | 'unsettled' | 'unpublished' | 'nothing' | 'unreadable'

interface Verified {
  readonly path: string
  readonly state: State
  readonly digest: string | null
  readonly actual: string | null
  readonly publishedAt: string | null
  readonly differences: Publication['differences']
  /** One sentence for each thing that is wrong. */
  readonly details: readonly string[]
}

const flags = [configInputFlag, headersFlag, ...pathReportFlags]

type VerifyFlags = FlagsOf<typeof flags>

/** `holdfast verify --config FILE` */
export const verifyCommand = command({
  name: 'verify',
  summary: 'compare the disk with what was published',
  description: `Compares each configured directory with the record of what was published there: names, contents, modes and owners. It
only reads; it asks no API server and needs no running agent.

States: ok; differs (another program changed it); unsettled (visible, but not known to survive a power cut); unpublished
(nothing was ever published there, although it has required objects); nothing (the same, with optional objects alone).`,
  words: [['[path...]', 'only these directories of the configuration']],
  flags,
  examples: `  holdfast verify --config /etc/holdfast.yaml
  holdfast verify --config /etc/holdfast.yaml -o json
  holdfast verify /etc/kubernetes/certs --quiet`,
  exitCodes: `0 the disk is as published, 2 wrong usage or configuration, 4 it is not.`,
  run: ({ io, options }, paths) => runVerify(io, paths, options),
})

async function runVerify({ stdin, stdout, env }: Io, paths: readonly string[], options: VerifyFlags): Promise<void> {
  const configuration = await loadForLooking(options, options.config === '-' ? stdin : undefined)
  const directories: Verified[] = []
  for (const directory of selected(configuration, paths)) directories.push(await verify(directory))
  const paint = painter(wantsColour(stdout, env))
  await print(stdout, options.output, { directories }, (wide) => {
    const rows = verifyRows(directories, paint, wide)
    return table(options.headers ? rows : rows.slice(1))
  })
  if (directories.some(({ state }) => state !== 'ok' && state !== 'nothing')) throw new Exit(exitCodes.fault)
}

async function verify(directory: DirectoryConfiguration): Promise<Verified> {
  const { path } = directory
  const nothing = { path, digest: null, actual: null, publishedAt: null, differences: [] }
  const [{ disableCoreDumps, readPublication }, { describeDifferences, sortedDifferences }, { hasRequired }] =
    await Promise.all([
      import('../../durable/index.js'),
      import('../../directories/verify.js'),
      import('../../agent/directory-state.js'),
    ])
  disableCoreDumps()
  let publication: Publication | undefined
  try {
    publication = await readPublication(path)
  } catch (error) {
    return {
      ...nothing,
      state: 'unreadable',
      details: [error instanceof Error ? error.message : String(error)],
    }
  }
  if (publication === undefined) {
    return hasRequired(directory)
      ? { ...nothing, state: 'unpublished', details: ['holdfast has published nothing here'] }
      : { ...nothing, state: 'nothing', details: [] }
  }
  const details = describeDifferences(publication)
  const unsettled = publication.settled ? [] : ['visible, but not known to survive a power cut']
  return {
    path,
    state: details.length > 0 ? 'differs' : publication.settled ? 'ok' : 'unsettled',
    digest: publication.digest,
    actual: publication.actual ?? null,
    publishedAt: publication.publishedAt.toISOString(),
    differences: sortedDifferences(publication.differences),
    details: [...details, ...unsettled],
  }
}

function verifyRows(directories: readonly Verified[], paint: Paint, wide: boolean): (string | Cell)[][] {
  const further = (...cells: string[]) => (wide ? cells : [])
  const rows: (string | Cell)[][] = [['PATH', 'STATE', ...further('PUBLISHED', 'DIGEST', 'ACTUAL'), 'WHAT DIFFERS']]
  for (const { path, state, details, publishedAt, digest, actual } of directories) {
    const fine = state === 'ok' || state === 'nothing'
    const [first = '', ...others] = details
    const found = further(publishedAt ?? '-', digest ?? '-', actual ?? '-')
    rows.push([path, { text: state, paint: (text) => paint(fine ? 'green' : 'red', text) }, ...found, first])
    for (const detail of others) rows.push(['', '', ...further('', '', ''), detail])
  }
  return rows
}
