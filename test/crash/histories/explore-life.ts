/** Plays a life on its ground, and judges each step of it by what the readers of all its paths say before and afterwards. */
import { Killed } from '../../durable/intercepted.js'
import { Random } from '../../random.js'
import { ModelError } from '../model/model-disk.js'
import { nothingYet, type Explored } from './explored.js'
import { differenceOf, disagreement, type Facts, factsOf } from './facts.js'
import { type AllFacts, faultOfLife, takenBy, textFor } from './judge-life.js'
import type { Call, Deed, Life, Step } from './life.js'
import { type Answered, contentOfVersion, makeCall, type Memory } from './life-calls.js'
import { ModelGround } from './model-ground.js'
import { kindOf } from './contents.js'
import type { Ground } from './play.js'
import { ownPrefix } from '../judge/names.js'
import { Pool, touchesRecords } from './pool.js'
import { parentOf, type Snapshot } from './snapshot.js'

/** The paths that a life is about. */
function pathsOf(life: Life): string[] {
  const named = (step: Step) => ('path' in step ? [step.path, 'from' in step ? step.from : undefined] : [])
  const paths = life.flatMap((step) => {
    const { disturbed } = 'disturbed' in step ? step : {}
    return [...named(step), ...(typeof disturbed === 'object' ? named(disturbed) : [])]
  })
  return [...new Set(paths.filter((path) => path !== undefined))].sort()
}

export async function exploreLife(life: Life, seed: number, ground: Ground): Promise<Explored> {
  const player = new Player(life, ground, new Random(seed))
  await player.play()
  return player.explored
}

/** Calls that change what readers see at several places at once. */
const worksAtSeveralPlaces: ReadonlySet<string> = new Set(['batch', 'takeAway'])

class Player {
  readonly explored = nothingYet()
  readonly #paths: readonly string[]
  readonly #pool: Pool
  readonly #memory: Memory = { version: 0, states: new Map() }
  /** Nobody but calls that have answered has had to do with the record of these since they were published. */
  readonly #sure = new Set<string>()
  /** Another program has changed something that nobody has synced. */
  #isUnsynced = false
  #now: AllFacts = new Map()
  #boots = 0
  /** The last look at each path: as long as nothing there changes, all readers say the same. */
  readonly #looks = new Map<string, { readonly state: string; readonly facts: Facts }>()

  constructor(
    readonly life: Life,
    readonly ground: Ground,
    readonly random: Random,
  ) {
    this.#paths = pathsOf(life)
    this.#pool = new Pool(ground)
  }

  async play(): Promise<void> {
    this.#now = await this.#look()
    for (const step of [...this.life, ...this.#end()]) {
      if (this.explored.faults.length > 0) return
      await this.#take(step)
    }
  }

  /** In the end nothing is held or mounted any more: each directory can be what the source says, and is. */
  #end(): Step[] {
    const settled = {
      do: 'call',
      content: 0,
      agent: 'one',
      keepHold: false,
      onDrop: 'keep',
      until: 0,
      number: 0,
      at: 0,
    } as const
    const passes = this.#paths
      .filter((path) => kindOf(path) !== 'file' && !this.#paths.some((other) => isNestedIn(path, other)))
      .flatMap((path) => {
        const pass = { ...settled, call: 'pass', path, release: true, force: true, adopt: 'replace' } as const
        return [pass, pass]
      })
    return [{ do: 'unmount' }, { do: 'reboot' }, ...passes]
  }

  readonly #isSure = (path: string): boolean => this.#sure.has(path)

  async #look(ground: Ground = this.ground): Promise<AllFacts> {
    const snapshot = ground.look()
    const all = new Map<string, Facts>()
    for (const path of this.#paths) {
      const state = `${ground.now} ${this.#boots} ${stateOf(snapshot, path)}`
      const known = this.#looks.get(path)
      const isKnown = ground === this.ground && known?.state === state
      const facts = isKnown ? known.facts : await factsOf(ground, path, snapshot)
      if (ground === this.ground) this.#looks.set(path, { state, facts })
      all.set(path, facts)
      if (isKnown) continue
      if (ground === this.ground) this.#pool.note(path, snapshot)
      const fault = disagreement(facts)
      if (fault !== undefined) this.#report(`two readers of ${path} disagree: ${fault}`)
    }
    return all
  }

  #report(fault: string): void {
    this.explored.faults.push(fault)
  }

  async #take(step: Step): Promise<void> {
    const before = this.#now
    if (step.do === 'call') await this.#call(step)
    else if ('path' in step) await this.#deed(step)
    else {
      if (step.do === 'wait') this.ground.now += 5000
      if (step.do === 'object') this.#memory.version += 1
      if (step.do === 'unmount') this.#pool.unmount()
      if (step.do === 'sync') await this.ground.sync()
      if (step.do === 'reboot') await this.ground.reboot()
      if (step.do === 'cut') this.ground.losePower(new Random(step.seed))
      if (step.do === 'reboot' || step.do === 'cut') {
        this.#memory.states.clear()
        this.#boots += 1
      }
      if (step.do === 'cut' || step.do === 'unmount') this.#sure.clear()
      if (step.do !== 'wait' && step.do !== 'object') this.#isUnsynced = false
      this.#now = step.do === 'object' ? before : await this.#look()
    }
  }

  /** What changes the content alone takes nothing of what is said of it. */
  async #deed(deed: Deed): Promise<void> {
    const { do: what, path } = deed
    const before = this.#now.get(path)
    this.#pool.do(deed)
    this.#isUnsynced = true
    if (touchesRecords.has(what)) {
      if (what === 'mount') this.#sure.clear()
      this.#sure.delete(path)
    }
    for (const inner of this.#paths) if (inner.startsWith(`${path}/`)) this.#sure.delete(inner)
    this.#now = await this.#look()
    const after = this.#now.get(path)
    if (!this.#sure.has(path) || before === undefined || after === undefined) return
    const [one, other] = [before, after].map(withoutContent) as [object, object]
    const fault = differenceOf(one as Record<string, unknown>, other as Record<string, unknown>)
    if (fault !== undefined) this.#report(`another program has changed the content of ${path} alone: ${fault}`)
  }

  async #call(asked: Call): Promise<void> {
    const call = this.#fitting(asked)
    if (call === undefined) return
    const before = this.#now
    const isSure = this.#sure.has(call.path)
    const wasUnsynced = this.#isUnsynced
    const { answer, between } = await this.#make(call)
    const after = (this.#now = await this.#look())
    this.#count(call, answer)
    const sure = isSure && between === undefined
    const inLife = (path: string): string => this.#paths.find((one) => path.endsWith(`/${one}`)) ?? path
    const fault = faultOfLife({
      call,
      answer,
      before,
      between,
      after,
      version: this.#memory.version,
      sure,
      isSure: this.#isSure,
      inLife,
    })
    if (fault !== undefined) this.#report(`${call.call} ${call.path}: ${fault}`)
    const isDone = answer !== undefined && answer.error === undefined && answer.told === ''
    for (const path of [call.path, ...(call.from === undefined ? [] : [call.from])]) {
      if (!isDone || call.disturbed !== undefined || call.call === 'takeAway') this.#sure.delete(path)
    }
    // What it has removed before it failed may come back.
    if (!isDone && call.call === 'takeAway') this.#isUnsynced = true
    const isPublished = isDone && answer.results.some(({ outcome }) => outcome !== 'unchanged')
    if (isPublished && call.disturbed === undefined) this.#sure.add(call.path)
    if (this.explored.faults.length === 0 && !wasUnsynced && sure) await this.#judgeCuts(call, answer, before, after)
  }

  /** A wrong request is only made where something is there that must stay; a version is only recorded of the content that it gave. */
  #fitting(call: Call, now = this.#now): Call | undefined {
    const facts = now.get(call.path)
    if (call.call === 'objects' && facts?.text !== textFor(call.path, contentOfVersion(this.#memory.version)))
      return undefined
    if ((call.call === 'move' || call.call === 'batch') && call.from === undefined) return undefined
    const hasInner = this.#paths.some((path) => path.startsWith(`${call.path}/`))
    // A rollout's directory holds no target.
    if (call.call === 'takeAway' && hasInner) return undefined
    const isThere =
      facts !== undefined && facts.text !== '' && facts.publication !== undefined && facts.kept?.publisher === 'agent'
    if ((call.wrong !== 'form' && call.wrong !== 'publisher') || isThere) return call
    const { wrong: _, ...right } = call
    return right
  }

  async #make(
    call: Call,
  ): Promise<{ answer: Answered | undefined; between: { from: AllFacts; to: AllFacts } | undefined }> {
    const { disturbed, at } = call
    let count = 0
    let between: { from: AllFacts; to: AllFacts } | undefined
    let halted: Promise<{ from: AllFacts; to: AllFacts }> | undefined
    const before = async (name: string): Promise<void> => {
      const here = ++count
      // A call that works on several entries at once stands still as a whole.
      await halted
      if (disturbed === 'killed' && here >= at) throw new Killed('killed')
      if (here !== at || disturbed === undefined) return
      if (typeof disturbed === 'string') throw new ModelError(disturbed, name, call.path)
      // On a real disk nobody can tell when a system call ends that another part of the call has begun.
      if (worksAtSeveralPlaces.has(call.call) && !(this.ground instanceof ModelGround)) return
      halted = this.#comesBetween(disturbed)
      between = await halted
    }
    const answer = await this.ground.run((fs, base) => makeCall(fs, base, call, this.#memory), before)
    const isKilled = disturbed === 'killed' && count >= at
    if (isKilled) this.#memory.states.clear()
    return { answer: isKilled ? undefined : answer, between }
  }

  /** It is judged by itself, too: for it the other one has come to a halt. */
  async #comesBetween(step: Call | Deed): Promise<{ from: AllFacts; to: AllFacts }> {
    // What other parts of the halted call have begun on the model disk ends in this turn.
    await new Promise((resolve) => setImmediate(resolve))
    const from = await this.#look()
    if (step.do !== 'call') {
      this.#pool.do(step)
      this.#isUnsynced = true
      for (const path of this.#paths) this.#sure.delete(path)
    } else {
      const { disturbed: _, ...asked } = step
      const call = this.#fitting(asked, from)
      if (call === undefined) return { from, to: from }
      // One that comes twice leaves nothing of what was read before it.
      if (call.call === 'replace' && call.number > 0)
        await this.ground.run((fs, base) => makeCall(fs, base, call, this.#memory))
      const again = { ...call, content: (call.content + 1) % 4 }
      const answer = await this.ground.run((fs, base) => makeCall(fs, base, again, this.#memory))
      const to = await this.#look()
      const inLife = (path: string): string => path
      const fault = faultOfLife({
        call: { ...again, disturbed: 'EIO' },
        answer,
        before: from,
        after: to,
        version: this.#memory.version,
        sure: false,
        isSure: this.#isSure,
        inLife,
      })
      if (fault !== undefined) this.#report(`between, ${call.call} ${call.path}: ${fault}`)
    }
    return { from, to: await this.#look() }
  }

  #count(call: Call, answer: Answered | undefined): void {
    const { error } = answer ?? {}
    const reason = error && 'reason' in error ? String(error.reason) : error?.name
    this.explored.outcomes.push(`${call.call} ${answer === undefined ? 'killed' : (reason ?? 'done')}`)
  }

  /** What was answered outlives a power cut; what was killed is as before, or as was asked for. */
  async #judgeCuts(call: Call, answer: Answered | undefined, before: AllFacts, after: AllFacts): Promise<void> {
    if (!(this.ground instanceof ModelGround) || this.random.below(3) > 0 || call.from !== undefined) return
    const isDone = answer !== undefined && answer.error === undefined && answer.told === ''
    if (answer !== undefined && !isDone) return
    const survivor = this.ground.fork()
    survivor.losePower(this.random)
    this.explored.states += 1
    const now = (await this.#look(survivor)).get(call.path)
    const [then, last] = [before.get(call.path), after.get(call.path)]
    if (now === undefined || then === undefined || last === undefined) return
    const cut = new Map([[call.path, now]])
    const taken = takenBy(call, new Map([[call.path, then]]), cut, this.#isSure)
    if (taken !== undefined) this.#report(`after a power cut behind ${call.call}, which may not take this: ${taken}`)
    if (!isDone) return
    if (now.text !== last.text)
      this.#report(`after a power cut behind ${call.call} ${call.path} holds\n${now.text}and not\n${last.text}`)
    const fault = differenceOf(lasting(last), lasting(now))
    if (fault !== undefined) this.#report(`after a power cut behind ${call.call} of ${call.path}: ${fault}`)
  }
}

/** All that readers of a path may find: the target, what is beside it, and the inodes of both. */
function stateOf(snapshot: Snapshot, path: string): string {
  const own = ownPrefix(path)
  const parent = snapshot.get(parentOf(path))?.identity ?? ''
  const seen = [...snapshot].filter(([at]) => at === path || at.startsWith(`${path}/`) || at.startsWith(own))
  return (
    parent + seen.map(([at, { mode, data, identity, lists }]) => [at, mode, identity, lists, data].join(' ')).join('\n')
  )
}

function isNestedIn(path: string, other: string): boolean {
  return path.startsWith(`${other}/`) || other.startsWith(`${path}/`)
}

function withoutContent(facts: Facts): object {
  const { publication, hold, past } = facts
  if (publication === undefined) return { publication }
  const { actual: _, differences: __, settled: ___, durable: ____, retired: _____, ...said } = publication
  return { ...said, word: hold, past: past.map(({ sequence, digest }) => ({ sequence, digest })) }
}

/** Lines that are added to a record are not synced: hooks run again, and versions are asked for again. */
function lasting(facts: Facts): Record<string, unknown> {
  const { publication, hold, past } = facts
  if (publication === undefined) return {}
  const { digest, actual, relocation, movedTo, letGo, removing } = publication
  const kept = past.slice(1).map(({ sequence, state }) => ({ sequence, state }))
  return { digest, actual, relocation, movedTo, letGo, removing, hold, kept }
}
