/*
 * Changes static pods, one after the other, with the directory that they read: publishes, watches, and takes all of it back where one
 * does not become ready. Each step is written down before it is made; so a rollout that was killed, or whose power was cut, is finished
 * or taken back by whoever comes next.
 */
import { join } from 'node:path'
import type { Disk } from '../durable/index.js'
import { isPublicationError, messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { withState } from './failure.js'
import { readNodeFile } from './node-files.js'
import type { ReadinessSettings } from './readiness-settings.js'
import type { Probe } from './readiness.js'
import { checkPlaces, identify, planRollout, type RolloutRequest } from './rollout-plan.js'
import {
  bytesOf,
  readState,
  rolloutLockPath,
  tidyState,
  writeState,
  type RolledManifest,
  type RolloutState,
} from './rollout-state.js'
import { bringTree, removeKept, returnTree, stageTree } from './rollout-tree.js'
import { rolloutTiming, watchPod, type RolloutTiming } from './rollout-watch.js'
import { uptime } from './watch-start.js'

export interface RolloutOutcome {
  /**
   * `unchanged`: all was as asked for. `taken-back`: all is as it was before. `not-ready`, `unknown`: what is new stays, and `--resume`
   * watches it again. `nothing-to-resume`: no rollout had been interrupted.
   */
  readonly outcome: 'ready' | 'unchanged' | 'taken-back' | 'not-ready' | 'unknown' | 'nothing-to-resume'
  /** File names of the manifests, as far as they were made live. */
  readonly manifests: readonly string[]
  readonly message?: string
}

export interface RolloutMeans {
  readonly disk: Disk
  readonly log: Log
  readonly signal: AbortSignal
  /** Opens what the settings name; they may be those of a rollout that was interrupted. */
  readonly openProbes: (settings: ReadinessSettings) => Promise<readonly Probe[]>
  readonly timing?: RolloutTiming
}

/**
 * One that was interrupted is finished, or taken back, first; if it was the same, that is all.
 * @throws InvalidInput, StaticPodError, DurableWriteError (Busy while another rollout is under way); the signal's reason: the next run,
 *   or `resume`, goes on
 */
export async function rollout(request: RolloutRequest, means: RolloutMeans): Promise<RolloutOutcome> {
  const { disk, log } = means
  const { manifestDirectory } = request
  // What is wrong with the request is said before anything is made, even a lock.
  await checkPlaces(request, disk)
  const before = await readState(manifestDirectory, disk)
  if (before === undefined || before.phase === 'ended') await planRollout(request, disk, log)
  return underLock(manifestDirectory, disk, async () => {
    const found = await unfinished(manifestDirectory, means)
    if (found) {
      log.warn({ path: manifestDirectory, phase: found.phase }, 'a rollout was interrupted: holdfast ends it first')
      const isSame = found.request === (await identify(request, disk))
      const { readiness, timeout, fallback } = request
      const ended = await new Rollout(
        isSame ? { ...found, readiness, timeout, fallback } : found,
        manifestDirectory,
        means,
      ).run()
      if (isSame && ended) return ended
      if (ended?.outcome === 'not-ready' || ended?.outcome === 'unknown') {
        await new Rollout(found, manifestDirectory, means).end(ended.outcome)
      }
    }
    const plan = await planRollout(request, disk, log)
    if (plan === undefined) return { outcome: 'unchanged', manifests: [] }
    await writeState(manifestDirectory, plan, disk, log)
    const tree = plan.tree && request.tree ? await stageTree(request.tree, plan.tree, disk, means.signal) : null
    const state: RolloutState = { ...plan, phase: 'going', tree }
    await writeState(manifestDirectory, state, disk, log)
    const outcome = await new Rollout(state, manifestDirectory, means).run()
    if (outcome === undefined) throw new Error('unreachable')
    return outcome
  })
}

/** Finishes, or takes back, what was interrupted: for a unit at boot. */
export async function resume(manifestDirectory: string, means: RolloutMeans): Promise<RolloutOutcome> {
  return underLock(manifestDirectory, means.disk, async () => {
    const found = await unfinished(manifestDirectory, means)
    if (found === undefined) return { outcome: 'nothing-to-resume', manifests: [] }
    const ended = await new Rollout(found, manifestDirectory, means).run()
    return ended ?? { outcome: 'taken-back', manifests: [], message: 'it was interrupted before it changed anything' }
  })
}

async function unfinished(manifestDirectory: string, { disk, log }: RolloutMeans): Promise<RolloutState | undefined> {
  const found = await readState(manifestDirectory, disk)
  if (found?.phase !== 'ended') return found
  // A predecessor may have been killed before its sync.
  await writeState(manifestDirectory, { phase: found.phase, outcome: found.outcome, request: found.request }, disk, log)
  return undefined
}

async function underLock<T>(manifestDirectory: string, disk: Disk, work: () => Promise<T>): Promise<T> {
  const held = await disk.lock(rolloutLockPath(manifestDirectory), 0, undefined)
  try {
    await tidyState(manifestDirectory, disk)
    return await work()
  } finally {
    await held.release()
  }
}

/** What an error says of the disk. */
const interrupted = 'the rollout is interrupted: holdfast rollout --resume finishes it or takes it back'

/** One rollout, from what its state says. */
class Rollout {
  constructor(
    private state: RolloutState,
    private readonly directory: string,
    private readonly means: RolloutMeans,
  ) {}

  /** undefined: nothing that anybody reads had been changed, and what was staged is gone. */
  async run(): Promise<RolloutOutcome | undefined> {
    switch (this.state.phase) {
      case 'staging':
        await this.end('abandoned')
        return undefined
      case 'back':
        return this.#takeBack()
      case 'proven':
        return this.#finish()
      case 'going':
        return this.#go()
    }
  }

  /** Removes what was kept, and closes the file. What is live stays. */
  async end(outcome: string): Promise<void> {
    const { disk, log } = this.means
    const { tree, request } = this.state
    if (tree) await removeKept(tree, disk)
    await writeState(this.directory, { phase: 'ended', outcome, request }, disk, log)
  }

  async #go(): Promise<RolloutOutcome> {
    try {
      return await this.#forward()
    } catch (error) {
      const { signal, log } = this.means
      const isOver = signal.aborted || !isPublicationError(error) || error.published || error.reason === 'Busy'
      if (signal.aborted) log.warn({ path: this.directory }, interrupted)
      if (isOver || !this.state.fallback) throw withState(error, [interrupted])
      log.error({ error: messageOf(error) }, 'the rollout cannot go on')
      await this.#write({ phase: 'back', message: messageOf(error) })
      return this.#takeBack()
    }
  }

  async #forward(): Promise<RolloutOutcome> {
    const { means } = this
    const { tree, manifests } = this.state
    const probes = await means.openProbes(this.state.readiness)
    if (tree) await this.#locked(() => bringTree(tree, means.disk))
    for (const [index, manifest] of manifests.entries()) {
      // Those before the newest were proven ready.
      if (index < this.state.reached - 1) continue
      await this.#begin(index)
      const replaced = await this.#locked(() => this.#publish(manifest))
      const verdict = replaced ?? (await this.#watch(manifest, probes))
      if (verdict.state === 'ready') continue
      const { state, message } = verdict
      const names = manifests.slice(0, index + 1).map(({ name }) => name)
      if (state === 'replaced' || (state === 'not-ready' && this.state.fallback)) {
        await this.#write({ phase: 'back', message: `${manifest.name}: ${message}` })
        return this.#takeBack()
      }
      await this.#write({ since: null })
      means.log.error({ manifest: manifest.name, message }, 'the pod is not known to be ready in time: it stays')
      return { outcome: state, manifests: names, message: `${manifest.name}: ${message}` }
    }
    await this.#write({ phase: 'proven' })
    return this.#finish()
  }

  async #finish(): Promise<RolloutOutcome> {
    const manifests = this.state.manifests.map(({ name }) => name)
    await this.end('ready')
    this.means.log.info({ manifests }, 'every pod is ready: the rollout is done')
    return { outcome: 'ready', manifests }
  }

  /** The tree first: whatever starts again reads the old one. */
  async #takeBack(): Promise<RolloutOutcome> {
    const { disk, log } = this.means
    const { tree, manifests, reached, message, request } = this.state
    log.warn({ message }, 'holdfast takes the rollout back')
    const reachedOnes = manifests.slice(0, reached)
    const isBack = await this.#locked(async () => {
      const isBack = tree === null || (await returnTree(tree, disk, log))
      for (const manifest of reachedOnes.toReversed()) await this.#restore(manifest)
      return isBack
    })
    // Where another program has replaced the new tree, the old one is kept for people.
    if (isBack) await this.end('taken-back')
    else await writeState(this.directory, { phase: 'ended', outcome: 'taken-back', request }, disk, log)
    return { outcome: 'taken-back', manifests: reachedOnes.map(({ name }) => name), message }
  }

  /** Writes down that this manifest may be live from now on, and since when. */
  async #begin(index: number): Promise<void> {
    const { since, reached } = this.state
    const boot = await this.means.disk.fs.bootId()
    if (reached === index + 1 && since?.boot === boot) return
    await this.#write({ reached: index + 1, since: { boot, uptime: await uptime() } })
  }

  async #watch(manifest: RolledManifest, probes: readonly Probe[]): ReturnType<typeof watchPod> {
    const { disk, log, signal, timing = rolloutTiming } = this.means
    const { timeout, since } = this.state
    const watched = { path: this.#path(manifest), bytes: bytesOf(manifest.next), timeout, probes }
    return watchPod({ ...watched, since: since?.uptime ?? 0 }, { disk, log, signal, timing })
  }

  /** Makes a manifest live, unless another program has put one of its own there. */
  async #publish(manifest: RolledManifest): Promise<{ state: 'replaced'; message: string } | undefined> {
    const { disk, log, signal } = this.means
    signal.throwIfAborted()
    const path = this.#path(manifest)
    if ((await this.#whose(manifest)) === 'other') {
      return { state: 'replaced', message: `another program has changed ${path}` }
    }
    await disk.publishFiles([{ path, content: bytesOf(manifest.next), options: { mode: 0o600, log } }], signal)
    return undefined
  }

  /** Also where it is back already: a predecessor may have been killed before its sync. */
  async #restore(manifest: RolledManifest): Promise<void> {
    const { disk, log } = this.means
    const path = this.#path(manifest)
    if ((await this.#whose(manifest)) === 'other') {
      log.error({ path }, `another program has changed ${path} during the rollout: holdfast leaves it alone`)
    } else if (manifest.previous === null) await disk.removeFile(path)
    else {
      const content = bytesOf(manifest.previous)
      await disk.publishFiles([{ path, content, options: { mode: manifest.mode, log } }], undefined)
    }
  }

  async #whose({ name, previous, next }: RolledManifest): Promise<'ours' | 'other'> {
    const live = await readNodeFile(this.means.disk.fs, join(this.directory, name))
    const text = live === undefined ? null : Buffer.from(live).toString('base64')
    return text === next || text === previous ? 'ours' : 'other'
  }

  #path({ name }: RolledManifest): string {
    return join(this.directory, name)
  }

  async #write(change: Partial<RolloutState>): Promise<void> {
    this.state = { ...this.state, ...change }
    await writeState(this.directory, this.state, this.means.disk, this.means.log)
  }

  /** Under the lock that installers hold while manifests change. */
  async #locked<T>(work: () => Promise<T>): Promise<T> {
    const { manifestLock, timeout } = this.state
    if (manifestLock === null) return work()
    const held = await this.means.disk.lock(manifestLock, timeout, this.means.signal, interrupted)
    try {
      return await work()
    } finally {
      await held.release()
    }
  }
}
