import { directoryPublication, filePublication } from '../../../src/durable/publish/replace.js'
import { DurableWriteError } from '../../../src/durable/errors.js'
import { publish, type PublishOutcome } from '../../../src/durable/publish/publish.js'
import { removePublished } from '../../../src/durable/remove/removal.js'
import { rollBack } from '../../../src/durable/operator/rollback.js'
import { faultOfAnswer } from '../judge/answers.js'
import { missing, requestFor } from './content.js'
import { attemptLedger, type Catalogue, type Ledger, settledLedger } from './ledger.js'
import type { ModelDisk } from './model-disk.js'
import { ModelProcess } from './model-process.js'
import type { Step } from './scenario.js'

/** An instant at which a crash can come: what the kernel and the disk hold then. */
export interface Instant {
  readonly what: string
  readonly disk: ModelDisk
}

export interface Played {
  readonly outcomes: readonly (PublishOutcome | undefined)[]
  readonly instants: readonly Instant[]
  readonly ledgers: readonly Ledger[]
  readonly faults: readonly string[]
  /** Every target that was asked for is as asked. */
  readonly success: boolean
}

export interface PlayOptions {
  /** Keeps every instant. */
  readonly record?: boolean
  /** By a rollback, to the newest earlier content. */
  readonly rollback?: true | undefined
  /** Lets calls fail, or wait. */
  readonly prepare?: (process: ModelProcess) => void
}

/** Before the first change of a disk, and after each from now on. */
export function instantsOf(disk: ModelDisk): Instant[] {
  const instants: Instant[] = []
  const keep = (what: string): unknown => instants.push({ what, disk: disk.fork() })
  keep('the first change')
  disk.changed = keep
  return instants
}

/** One call of the core by a new process, and whether its answers are true of the visible content. */
export async function play(
  disk: ModelDisk,
  catalogues: readonly Catalogue[],
  before: readonly Ledger[],
  step: Step,
  { record = false, rollback, prepare }: PlayOptions = {},
): Promise<Played> {
  const process = new ModelProcess(disk)
  const instants = record ? instantsOf(disk) : []
  prepare?.(process)
  const faults: string[] = []
  const asked = step.flatMap((wanted, index) => (wanted === undefined ? [] : [{ index, wanted }]))
  const outcomes: (PublishOutcome | undefined)[] = step.map(() => undefined)
  try {
    const removals = asked.filter(({ wanted }) => wanted === missing)
    for (const { index } of removals) outcomes[index] = await removed(process, pathOf(catalogues, index))
    const publishing = asked.filter(({ wanted }) => wanted !== missing)
    const publications = publishing.map(({ index, wanted }) => {
      const { target, content } = entry(catalogues, index, wanted)
      if (target.form !== 'file') return directoryPublication(process, requestFor(target, content))
      const { files, fileMode = 0o600 } = content.request
      return filePublication(process, target.path, textOfFile(files), { mode: fileMode })
    })
    const paths = publications.map(({ path }) => path)
    const answers = await (rollback
      ? Promise.all(paths.map((path) => rolledBack(process, path)))
      : publish(publications))
    publishing.forEach(({ index }, at) => (outcomes[index] = answers[at]))
  } catch (error) {
    faults.push(`rejects: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
  }
  disk.changed = undefined
  process.before = undefined
  process.syncFault = undefined
  if (process.descriptors > 0) faults.push(`${process.descriptors} descriptors are left open`)
  const ledgers = before.map((ledger, index) => {
    const asked = step[index]
    const outcome = outcomes[index]
    const catalogue = catalogues[index]
    if (asked === undefined || catalogue === undefined) return ledger
    const wanted = catalogue.made(asked, ledger.visible)
    const seen = catalogue.visible(disk)
    if (seen.fault !== undefined) faults.push(seen.fault)
    if (outcome === undefined) return attemptLedger(ledger, wanted)
    const { path } = catalogue.target
    const { name } = seen
    const found = { isNew: name === wanted, isOld: name === ledger.visible, shown: name ?? '?' }
    const untrue = faultOfAnswer(outcome, found)
    if (untrue !== undefined) faults.push(`${path}: ${untrue}`)
    if (!('error' in outcome)) return settledLedger(wanted)
    const { published, code, message } = outcome.error
    if (code === 'ENOTRECOVERABLE') faults.push(`a defect of the program: ${message}`)
    if (!published) return { ...ledger, linked: new Set([...ledger.linked, wanted]) }
    return { ...attemptLedger(ledger, wanted), visible: wanted }
  })
  const success = asked.every(({ index }) => {
    const outcome = outcomes[index]
    return outcome !== undefined && !('error' in outcome)
  })
  return { outcomes, instants, ledgers, faults, success }
}

/** A missing target is a successful removal. */
async function removed(process: ModelProcess, path: string): Promise<PublishOutcome> {
  try {
    await removePublished(process, path, {})
    return { outcome: 'replaced', path, digest: missing, sequence: 0 }
  } catch (error) {
    if (!(error instanceof DurableWriteError)) throw error
    const isNothing = error.code === 'ENOENT' && error.reason === 'TargetUnfit'
    return isNothing ? { outcome: 'unchanged', path, digest: missing, sequence: 0 } : { error }
  }
}

function pathOf(catalogues: readonly Catalogue[], index: number): string {
  const catalogue = catalogues[index]
  if (!catalogue) throw new Error(`there is no target ${index}`)
  return catalogue.target.path
}

async function rolledBack(process: ModelProcess, path: string): Promise<PublishOutcome> {
  try {
    return await rollBack(process, path, { pin: { reason: '', until: 'released' } })
  } catch (error) {
    if (error instanceof DurableWriteError) return { error }
    throw error
  }
}

function entry(
  catalogues: readonly Catalogue[],
  index: number,
  wanted: string,
): { target: Catalogue['target']; content: ReturnType<Catalogue['content']> } {
  const catalogue = catalogues[index]
  if (!catalogue) throw new Error(`there is no target ${index}`)
  return { target: catalogue.target, content: catalogue.content(wanted) }
}

function textOfFile(files: Parameters<typeof directoryPublication>[1]['files']): string {
  const text = files['file']
  if (typeof text !== 'string') throw new Error('a content for a file target is { file: text }')
  return text
}
