import { DurableCalls, replaceFile } from '../src/durable/index.js'
import type { HeldLock } from '../src/durable/path/index.js'
import { DurableWriteError } from '../src/durable/errors.js'
import { codeOf } from '../src/errors.js'
import type { Log } from '../src/log.js'
import { readRegularFile } from '../src/regular-file.js'
import { warnUnproven } from '../src/unproven.js'
import { emptyLedger, type LedgerState } from './ledger.js'

/** A year of cuts, each minute, is less; in bytes. */
const largest = 256 * 2 ** 20
/** Milliseconds between two writes of changes that only add generations. */
const interval = 1000

/** The file at the witness's path holds no state of a witness. */
class UnfitState extends Error {
  override readonly name = 'UnfitState'
  readonly invalid = 'argument'
}

/**
 * Keeps other witnesses from this file, until its process ends: each would write over what the other has heard.
 * @throws DurableWriteError, with reason Busy where another witness has it
 */
export async function lockLedger(path: string, signal: AbortSignal): Promise<HeldLock> {
  try {
    return await new DurableCalls().lock(`${path}.lock`, 0, signal)
  } catch (error) {
    if (!(error instanceof DurableWriteError) || error.reason !== 'Busy') throw error
    const { code, syscall } = error
    throw new DurableWriteError(`another witness keeps its state in ${path}`, {
      code,
      syscall,
      path,
      reason: 'Busy',
      cause: error,
      state: 'nothing was changed',
      advice: 'stop it, or give each disk a --state of its own',
    })
  }
}

/** @throws UnfitState; the errno of open(2) or read(2) but ENOENT */
export async function readLedger(path: string): Promise<LedgerState> {
  let text: string
  try {
    text = (await readRegularFile(path, largest)).toString()
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return emptyLedger()
    throw error
  }
  const state = parseState(text)
  if (state?.version !== 1 || !Array.isArray(state.examinations)) {
    throw new UnfitState(`${path} is no state of a witness, or of a later version: name another file`)
  }
  return { ...emptyLedger(), ...state }
}

function parseState(text: string): Partial<LedgerState> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * Keeps the state in its file. It writes a change that only adds generations once a second: a witness killed in between knows of fewer
 * than there were, and then accuses no disk of a loss.
 */
export class WitnessFile {
  #timer: NodeJS.Timeout | undefined
  #last: Promise<void> = Promise.resolve()

  constructor(
    readonly path: string,
    private readonly state: LedgerState,
    /** Takes the error of a write in the background. */
    private readonly failed: (error: unknown) => void,
    /** For what its disk may lose. */
    private readonly log: Log,
  ) {}

  soon(): void {
    this.#timer ??= setTimeout(() => {
      this.now().catch(this.failed)
    }, interval)
  }

  /** Durable on return. @throws DurableWriteError */
  now(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#last = this.#last
      .catch(() => undefined)
      .then(async () => {
        const { unproven } = await replaceFile(this.path, `${JSON.stringify(this.state)}\n`)
        if (unproven) warnUnproven(this.log, this.path)
      })
    return this.#last
  }
}
