import type { EndMark, Examination, Found, Run, Standing, Verdict } from './types.js'

/** The content of the witness's file. Generations count from 1; 0 is none. */
export interface LedgerState {
  readonly version: 1
  run?: Run
  /** See Standing. */
  place: number
  /** The newest generation before the first at this place. */
  base: number
  /** The newest generation that the node was about to publish. */
  announced: number
  /** The newest generation at this place that the node said is durable. */
  acknowledged: number
  /** Acknowledged generations, at all places. */
  total: number
  unproven: boolean
  /** Where something was announced that no examination has followed yet. */
  session?: { boot: string; ended: boolean }
  examinations: Examination[]
}

export const emptyLedger = (): LedgerState => ({
  version: 1,
  place: 1,
  base: 0,
  announced: 0,
  acknowledged: 0,
  total: 0,
  unproven: false,
  examinations: [],
})

/** Examinations in a verdict, of those that were kept and of the others: a message between node and witness has 4 MiB at most. */
const mostShown = 1000

/** The node's request makes no sense here: nothing is changed. */
export class Refused extends Error {
  override readonly name = 'Refused'
}

/**
 * The announced and acknowledged generations, and what the disk showed after each outage. The ledger errs on the disk's side: it counts
 * no acknowledgement that it did not hear.
 */
export class Ledger {
  constructor(readonly state: LedgerState) {}

  /** The standing that a connecting node needs; undefined where no run has begun. @throws Refused another machine's */
  open(boot: string, machine: string): Standing | undefined {
    const { run, place, announced, session } = this.state
    if (run === undefined) return undefined
    if (run.machine !== machine) {
      throw new Refused('this witness keeps the run of another machine: start one with a --state of its own for each')
    }
    return { run, place, announced, due: session !== undefined && session.boot !== boot }
  }

  begin(run: Run): void {
    if (this.state.run !== undefined) throw new Refused('a run has begun already')
    this.state.run = run
  }

  /** @throws Refused where the disk has not been examined since the machine was off */
  announce(generation: number, boot: string): void {
    const { state } = this
    if (state.run === undefined) throw new Refused('no run has begun')
    if (state.session !== undefined && state.session.boot !== boot) throw new Refused('the disk is not examined yet')
    if (generation <= state.announced) throw new Refused(`generation ${generation} is not new`)
    state.announced = generation
    state.session = { boot, ended: false }
  }

  acknowledge(generation: number, unproven: boolean): void {
    const { state } = this
    if (generation !== state.announced) throw new Refused(`generation ${generation} is not the one announced`)
    if (generation === state.acknowledged) return
    state.acknowledged = generation
    state.total += 1
    state.unproven ||= unproven
  }

  /** The program on the node has ended, and the machine went on: a later outage finds no write in flight. */
  ended(boot: string): void {
    if (this.state.session?.boot === boot) this.state.session.ended = true
  }

  /** `outage`: the operator's word for it. @throws Refused where the machine has not been off */
  examined(
    found: Found,
    outage: 'power' | 'reset',
    boot: string,
    at: Date,
    marks: readonly EndMark[] = [],
  ): Examination {
    const { state } = this
    const { session, acknowledged, announced } = state
    if (session === undefined || session.boot === boot) throw new Refused('the machine has not been off since')
    const inFlight = announced > acknowledged
    // A mark of an earlier generation is that of an earlier program.
    const ended = session.ended || marks.some((mark) => mark.boot === session.boot && mark.generation >= announced)
    const examination: Examination = {
      at: at.toISOString(),
      outage: ended ? 'orderly' : outage === 'reset' ? 'reset' : inFlight ? 'power' : 'idle',
      acknowledged,
      announced,
      found,
      ...this.#judge(found),
    }
    state.examinations.push(examination)
    delete state.session
    if (found.state === 'whole') state.announced = Math.max(announced, found.generation)
    if (examination.result !== 'kept') {
      // The faulty directory stays for people who examine it; the next generations go elsewhere.
      state.place += 1
      state.base = state.announced
      state.acknowledged = 0
    }
    return examination
  }

  #judge(found: Found): Pick<Examination, 'result' | 'lost'> {
    const { acknowledged, announced } = this.state
    switch (found.state) {
      case 'mixed':
      case 'torn':
        return { result: 'torn', lost: 0 }
      case 'missing':
        return acknowledged === 0 ? { result: 'kept', lost: 0 } : { result: 'lost', lost: this.#sinceBaseline(0) }
      case 'whole': {
        const { generation } = found
        if (generation > announced) return { result: 'unknown', lost: 0 }
        if (generation >= acknowledged) return { result: 'kept', lost: 0 }
        return { result: 'lost', lost: this.#sinceBaseline(generation) }
      }
    }
  }

  /** Acknowledged generations at this place after this one: numbers are not reused, and few are announced in vain. */
  #sinceBaseline(generation: number): number {
    const { acknowledged, base } = this.state
    return acknowledged - Math.max(generation, base)
  }

  /** @throws Refused where no run has begun */
  verdict(): Verdict {
    const { run, examinations, total, unproven } = this.state
    if (run === undefined) throw new Refused('no run has begun: there is nothing to judge')
    const sum = (count: (examination: Examination) => number) => examinations.reduce((all, one) => all + count(one), 0)
    const outages = (outage: Examination['outage']) =>
      sum((one) => (one.outage === outage && one.result !== 'unknown' ? 1 : 0))
    const bad = examinations.some(({ result }) => result === 'lost' || result === 'torn')
    const cuts = outages('power')
    const shown = new Set(examinations.slice(-mostShown))
    for (const one of examinations.filter(({ result }) => result !== 'kept').slice(-mostShown)) shown.add(one)
    return {
      verdict: bad ? 'lost' : cuts > 0 ? 'kept' : 'none',
      run,
      unproven,
      cuts,
      notCounted: {
        idle: outages('idle'),
        orderly: outages('orderly'),
        reset: outages('reset'),
        unknown: sum(({ result }) => (result === 'unknown' ? 1 : 0)),
      },
      acknowledged: total,
      lost: sum(({ lost }) => lost),
      torn: sum(({ result }) => (result === 'torn' ? 1 : 0)),
      examinations: examinations.filter((one) => shown.has(one)),
      omitted: examinations.length - shown.size,
    }
  }
}
