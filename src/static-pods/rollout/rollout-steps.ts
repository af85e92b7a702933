/* The steps of one rollout, forth and back, and its end: the state file tells of each step before it happens. */
import { join } from 'node:path'
import { isPublicationError, messageOf } from '../../errors.js'
import { InvalidInput, StaticPodError, withState } from '../failure.js'
import { hostPathFaults } from '../host-paths.js'
import { presentFiles, type ProbeFiles } from '../ready/probe-files.js'
import type { Probe, ReadinessSettings } from '../ready/readiness.js'
import { watch, type Proof, type WatchMeans } from '../ready/watch.js'
import { parseManifest, type Manifest } from '../pod/manifest.js'
import { holding, readNodeFile } from '../node-files.js'
import { filesAfter } from './rollout-probes.js'
import {
  bytesOf,
  writeState,
  type EndedRollout,
  type RolledManifest,
  type RolloutOutcome,
  type RolloutState,
} from './rollout-state.js'
import { bringTree, findStaged, type KeptTree, removeAllKept, removeKept, returnTree } from './rollout-tree.js'
import type { DurableCalls } from '../../durable/index.js'

export interface RolloutMeans extends WatchMeans {
  /** Opens what the settings name; they may be those of a rollout that was interrupted. `isTrial`: before anything changes. */
  readonly openProbes: (settings: ReadinessSettings, files: ProbeFiles, isTrial: boolean) => Promise<readonly Probe[]>
}

/** The end of a rollout, durably, with the directories that stay of it and of earlier ones. */
export async function closeState(
  manifestDirectory: string,
  ended: Omit<EndedRollout, 'phase' | 'kept'>,
  kept: readonly KeptTree[],
  { durable, log }: Pick<RolloutMeans, 'durable' | 'log'>,
): Promise<Pick<RolloutOutcome, 'kept'>> {
  const { outcome, request, message } = ended
  const trees = kept.length > 0 && { kept: kept.map(({ tree }) => tree) }
  const why = message !== undefined && { message }
  await writeState(manifestDirectory, { phase: 'ended', outcome, request, ...why, ...trees }, durable, log)
  return kept.length > 0 ? { kept: kept.map(({ message }) => message) } : {}
}

/** `replaced`: another program has made another manifest live. */
type WatchResult = { readonly state: 'ready' } | { readonly state: 'not-ready' | 'replaced'; readonly message: string }

/** Milliseconds for which a rollout that was taken back waits for its old pods, all together. */
const longestReturn = 120_000

/** The end of an error's sentence about an interrupted rollout. */
const interrupted =
  'the rollout is interrupted: holdfast rollout --resume finishes it or takes it back, and with --take-back only takes it back'

/** One rollout, from what its state says. */
export class Rollout {
  constructor(
    private state: RolloutState,
    private readonly directory: string,
    private readonly means: RolloutMeans,
  ) {}

  /** undefined: nothing that a pod reads had changed, and the staged tree is gone. `takeBack`: without a look at the pods. */
  async run(takeBack = false): Promise<RolloutOutcome | undefined> {
    switch (this.state.phase) {
      case 'staging':
        // The state file names the staged tree first: a killed removal leaves a part of it, which no record tells of.
        await this.#write({ tree: this.state.tree && (await findStaged(this.state.tree, this.means.durable)) })
        await this.end('abandoned', 'staged')
        return undefined
      case 'back':
        return this.#goBack()
      case 'proven':
        return this.#finish()
      case 'going':
        return takeBack ? this.#back('--take-back') : this.#go()
    }
  }

  /**
   * Removes kept directories, unless one is in use, and closes the file. What is live stays. `beside`: pods may have found the tree beside
   * the target live, or it was only staged, or people have to sort it out.
   */
  async end(outcome: string, beside: 'live' | 'staged' | 'unclear' = 'live'): Promise<Pick<RolloutOutcome, 'kept'>> {
    const { durable, log } = this.means
    const { kept: earlier = [], request, message } = this.state
    const tree = beside === 'unclear' ? null : this.state.tree
    const kept = await removeAllKept(earlier, durable, log)
    const own = tree ? await removeKept(tree, durable, log, beside === 'live') : undefined
    return closeState(
      this.directory,
      { outcome, request, ...(message !== '' && { message }) },
      [...kept, ...(own ? [own] : [])],
      this.means,
    )
  }

  /** @throws StaticPodError where pods may still mount the directory that would go with the end of this rollout */
  refuseAnother(message: string): void {
    const { tree, reached, manifests } = this.state
    const waiting = manifests.slice(reached).map(({ name }) => name)
    if (tree === null || waiting.length === 0) return
    throw new StaticPodError(
      `${message}; that rollout has made ${tree.target} new, and ${waiting.join(', ')} may still read the old one: holdfast begins ` +
        'no other; --resume watches again, and --resume --take-back takes it back',
    )
  }

  async #go(): Promise<RolloutOutcome> {
    try {
      return await this.#forward()
    } catch (error) {
      const { signal, log } = this.means
      // Once all are proven ready no way leads back: the old directory may be half gone.
      const isProven = this.state.phase === 'proven'
      const isForLater = isPublicationError(error)
        ? error.published || error.reason === 'Busy'
        : !(error instanceof StaticPodError) || error instanceof InvalidInput
      const isOver = signal.aborted || isProven || isForLater
      if (signal.aborted) log.warn({ path: this.directory }, interrupted)
      if (isOver || !this.state.fallback) throw withState(error, [interrupted])
      log.error({ error: messageOf(error) }, 'the rollout cannot go on')
      return this.#back(messageOf(error))
    }
  }

  /** Goes back also where a full disk takes no new state: the next run that finds `going` may go either way. */
  async #back(message: string): Promise<RolloutOutcome> {
    let isKnown = true
    await this.#write({ phase: 'back', message }).catch((error: unknown) => {
      isKnown = false
      this.means.log.error({ error: messageOf(error) }, 'could not write down that the rollout goes back')
    })
    return this.#goBack(isKnown)
  }

  async #goBack(isKnown = true): Promise<RolloutOutcome> {
    try {
      return await this.#takeBack(isKnown)
    } catch (error) {
      throw withState(error, [interrupted])
    }
  }

  async #forward(): Promise<RolloutOutcome> {
    const { means } = this
    const { tree, manifests, readiness } = this.state
    const files = await filesAfter(tree, readiness, means.durable)
    const probes = await means.openProbes(readiness, files, false)
    if (tree) await this.#locked(() => bringTree(tree, means.durable))
    for (const [index, manifest] of manifests.entries()) {
      // Those before the newest were proven ready.
      if (index < this.state.reached - 1) continue
      const replaced = await this.#publish(index, manifest)
      const reached = replaced ?? (await this.#watchNew(manifest, probes))
      if (reached.state === 'ready') continue
      const { message } = reached
      const names = manifests.slice(0, index + 1).map(({ name }) => name)
      if (this.state.fallback) return this.#back(`${manifest.name}: ${message}`)
      await this.#write({ since: null })
      means.log.error({ manifest: manifest.name, message }, 'the pod is not known to be ready in time: it stays')
      return { outcome: 'not-ready', manifests: names, message: `${manifest.name}: ${message}` }
    }
    await this.#write({ phase: 'proven' })
    return this.#finish()
  }

  async #finish(): Promise<RolloutOutcome> {
    const manifests = this.state.manifests.map(({ name }) => name)
    const kept = await this.end('ready')
    this.means.log.info({ manifests }, 'every pod is ready: the rollout is done')
    return { outcome: 'ready', manifests, ...kept }
  }

  /** The tree first: a pod that starts again reads the old one. */
  async #takeBack(isKnown: boolean): Promise<RolloutOutcome> {
    const { durable, log } = this.means
    const { tree, manifests, reached, message } = this.state
    log.warn({ message }, 'holdfast takes the rollout back')
    const stays: string[] = []
    const restored: string[] = []
    const unreturned = await this.#locked(async () => {
      const problem = tree === null ? undefined : await returnTree(tree, durable, log)
      for (const manifest of manifests.slice(0, reached).toReversed()) {
        const problem = await restoreManifest(this.#path(manifest), manifest, this.means)
        if (problem === undefined) restored.unshift(manifest.name)
        else stays.push(problem)
      }
      return problem
    })
    // Before the new tree goes: a run that found the phase `going` would exchange in the rest of it.
    if (!isKnown) await this.#write({ phase: 'back' })
    const outcome = 'taken-back'
    // Where another program has replaced one of the trees, both stay.
    const kept = await this.end(outcome, unreturned === undefined ? 'live' : 'unclear')
    const all = [message, ...(unreturned === undefined ? [] : [unreturned]), ...stays].join('; ')
    const back = manifests.filter(({ name, previous }) => previous !== null && restored.includes(name))
    return { outcome, manifests: restored, message: all, ...(await this.#awaitOld(back)), ...kept }
  }

  /** Says whether the pods of these manifests, which are back, answer again. All that a rollout had to do is done before. */
  async #awaitOld(manifests: readonly RolledManifest[]): Promise<Pick<RolloutOutcome, 'old'>> {
    if (manifests.length === 0) return {}
    const { means } = this
    const { fs } = means.durable
    const { readiness, timeout } = this.state
    try {
      const probes = await means.openProbes(readiness, presentFiles, false)
      const said: string[] = []
      const began = fs.uptime()
      const elapsed = () => Promise.resolve(fs.uptime() - began)
      const proof = { probes, every: true, timeout: Math.min(timeout, longestReturn), readyFor: 0 } as const
      for (const { name, previous } of manifests) {
        const result = await this.#watch(name, previous ?? '', proof, elapsed)
        said.push(result.state === 'ready' ? `${name} answers again` : `${name} does not answer yet: ${result.message}`)
      }
      return { old: said.join('; ') }
    } catch (error) {
      return { old: `nobody waited for the old pods: ${messageOf(error)}` }
    }
  }

  /** Watches the pod of a manifest in base64, for as long as that is live. */
  #watch(
    name: string,
    content: string,
    proof: Proof,
    elapsed: () => Promise<number>,
    late: (message: string, manifest: Manifest) => Promise<string> = (message) => Promise.resolve(message),
  ): Promise<WatchResult> {
    const { durable } = this.means
    const [path, bytes] = [join(this.directory, name), bytesOf(content)]
    const find = async () => {
      const live = await readNodeFile(durable.fs, path)
      if (live !== undefined && bytes.equals(live)) return { manifest: await parseManifest(bytes, path) }
      const message = `another program has ${live ? 'replaced' : 'removed'} ${path}`
      return { outcome: { state: 'replaced', message } as const }
    }
    return watch<WatchResult>(
      {
        proof,
        fields: { path },
        find,
        maySeeOldPod: true,
        elapsed,
        ready: () => Promise.resolve({ state: 'ready' }),
        late: async ({ message }) => ({
          state: 'not-ready',
          message: await late(message, await parseManifest(bytes, path)),
        }),
      },
      this.means,
    )
  }

  #watchNew({ name, next }: RolledManifest, probes: readonly Probe[]): Promise<WatchResult> {
    const { timeout, readiness, since } = this.state
    const proof = { probes, every: true, timeout, readyFor: readiness.readyFor } as const
    const elapsed = () => Promise.resolve(this.means.durable.fs.uptime() - (since?.uptime ?? 0) * 1000)
    return this.#watch(name, next, proof, elapsed, async (message, manifest) => {
      const { signal } = this.means
      const faults = await hostPathFaults(manifest.pod, [])
      const missing = faults.map(({ field, path, problem }) => `${field}: ${path} ${problem}`)
      const words = await Promise.all(probes.map(async (probe) => probe.lastWords?.(manifest, signal)))
      return [message, ...missing, ...words.filter((said) => said !== undefined)].join('; ')
    })
  }

  /** Writes down that a manifest may be live, makes it live, and writes down since when; unless another program has put another file there. */
  async #publish(index: number, manifest: RolledManifest): Promise<WatchResult | undefined> {
    const path = this.#path(manifest)
    if (this.state.reached !== index + 1) await this.#write({ reached: index + 1, since: null })
    const outcome = await this.#locked(() => publishManifest(path, manifest, this.means))
    if (outcome === 'other') return { state: 'replaced', message: `another program has changed ${path}` }
    const { fs } = this.means.durable
    const boot = await fs.bootId()
    // The wait for the lock is no time that the pod had.
    if (outcome === 'published' || this.state.since?.boot !== boot) {
      await this.#write({ since: { boot, uptime: fs.uptime() / 1000 } })
    }
    return undefined
  }

  #path({ name }: RolledManifest): string {
    return join(this.directory, name)
  }

  async #write(change: Partial<RolloutState>): Promise<void> {
    this.state = { ...this.state, ...change }
    await writeState(this.directory, this.state, this.means.durable, this.means.log)
  }

  /** Under the lock that installers hold while manifests change. */
  async #locked<T>(work: () => Promise<T>): Promise<T> {
    const { manifestLock, timeout } = this.state
    if (manifestLock === null) return work()
    return holding(this.means.durable.lock(manifestLock, timeout, this.means.signal, interrupted), work)
  }
}

/* One manifest of a rollout, on its way forth and back: a file that another program has put in its place stays. */

/** Makes a manifest live, durably: also where a predecessor may have been killed before its sync. */
async function publishManifest(
  path: string,
  manifest: RolledManifest,
  { durable, log, signal }: WatchMeans,
): Promise<'published' | 'unchanged' | 'other'> {
  signal.throwIfAborted()
  if (!(await isOurs(path, manifest, durable))) return 'other'
  const content = bytesOf(manifest.next)
  const [result] = await durable.publishFiles([{ path, content, options: { mode: 0o600, log } }], signal)
  return result?.outcome === 'unchanged' ? 'unchanged' : 'published'
}

/** Puts the previous manifest back, durably; answers why not, where the other program's file stays. */
async function restoreManifest(
  path: string,
  manifest: RolledManifest,
  { durable, log }: WatchMeans,
): Promise<string | undefined> {
  if (!(await isOurs(path, manifest, durable))) {
    const problem = `another program has changed ${path} during the rollout: holdfast leaves it alone`
    log.error({ path }, problem)
    return problem
  }
  const { previous, mode, owner } = manifest
  if (previous === null) await durable.removeFile(path)
  else {
    const options = { mode, ...(owner && { owner }), log }
    await durable.publishFiles([{ path, content: bytesOf(previous), options }], undefined)
  }
  return undefined
}

async function isOurs(path: string, { previous, next }: RolledManifest, { fs }: DurableCalls): Promise<boolean> {
  const live = await readNodeFile(fs, path)
  const text = live === undefined ? null : Buffer.from(live).toString('base64')
  return text === next || text === previous
}
