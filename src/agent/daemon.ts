import { returnFreedMemory } from '../../native/index.js'
import { returnMemoryWith } from '../content-garbage.js'
import { ConfigurationError, logProblems } from '../config/problem.js'
import type { AgentConfiguration, ServerAddress } from '../config/types.js'
import { endsWithin } from '../deadline.js'
import { failureFrom, messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { fingerprint } from '../regular-file.js'
import { Agent, StillMovingError } from './agent.js'
import type { OpenSource } from './agent-options.js'
import { ConfigurationWatch } from './configuration-watch.js'
import { hasRequired } from './directory-state.js'
import { beside } from './file-systems.js'
import { HealthEndpoint } from './health-endpoint.js'
import { readiness, type HealthServer, type ReadyzAnswer } from './report/http-server.js'
import { HangingState } from './report/hanging-state.js'
import { agentIdentity } from './identity.js'
import { SystemdNotifier, type NotifyTarget } from './notify-systemd.js'
import { ownIdentity, type ProcessIdentity } from './process-identity.js'
import type { PrometheusMetrics } from './report/prometheus.js'
import { noMetrics } from './report/report-metrics.js'
import { lockState, type StateLock } from './state-lock.js'
import { readStatusFile } from './report/read-status.js'
import { directoryStatus, operationStatus } from './report/status-file.js'
import { StatusStore, type CurrentStatus } from './report/status-store.js'
import { StatusWriter } from './report/status-writer.js'

/** Milliseconds to wait for the disk of the status, at the start and at the end. */
const statusPatience = 2_000

interface DaemonOptions {
  readonly configuration: AgentConfiguration
  /** Of the configuration file, before its reading; absent: the present file is in force. */
  readonly fingerprint?: string
  /** Reads the configuration again. Rejects with the mistake in it. */
  readonly load: () => Promise<AgentConfiguration>
  readonly openSource: OpenSource
  readonly log: Log
  readonly version: string
  readonly node: string
  /** systemd, where it started this process as a service that tells of its state. */
  readonly notify?: NotifyTarget | undefined
}

/** The agent with all that shows it: health server, metrics, status file. */
export class Daemon {
  readonly #options: DaemonOptions
  readonly #agent: Agent
  readonly #metrics: PrometheusMetrics | undefined
  readonly #status: StatusWriter
  readonly #statusStore: StatusStore
  readonly #hangingState: HangingState
  readonly #startedAt = new Date()
  readonly #endpoint: HealthEndpoint
  readonly #notifier: SystemdNotifier | undefined
  /** The status of this process is on the disk, or cannot be had there. */
  #isFound = false
  #stoppedAt: Date | undefined
  #configurationError: string | undefined
  /** Why the status could not be written. */
  #statusProblem: string | undefined
  /** The fingerprint of a file that waits for the end of a move. */
  #waitsForMove: string | undefined
  #reloadedAt: Date | undefined
  /** When a configuration last came into force. */
  #inForceSince = this.#startedAt
  #process: ProcessIdentity | undefined
  #identity: string | undefined
  #lock: StateLock | undefined
  #loseLock: () => void = () => undefined
  /** Resolves when another agent may take the state directory: this one must end. */
  readonly lost = new Promise<void>((resolve) => (this.#loseLock = resolve))
  #isLost = false
  #watch: ConfigurationWatch | undefined
  /** The watch makes the agent read a changed file. */
  #follows = false
  #reloading: Promise<void> = Promise.resolve()
  /** The reload that waits for the running one, and serves all callers that ask meanwhile. */
  #nextReload: Promise<void> | undefined

  private constructor(options: DaemonOptions, metrics: PrometheusMetrics | undefined) {
    const { configuration, log, openSource, node, version } = options
    this.#options = options
    this.#metrics = metrics
    this.#statusStore = new StatusStore(configuration.stateDirectory)
    this.#status = new StatusWriter({
      write: (isDue) => this.#writeStatus(isDue),
      failed: (error) => this.#statusFailed(error),
    })
    this.#hangingState = new HangingState({
      stateDirectory: configuration.stateDirectory,
      log,
      look: () => this.#hasLostLock(),
      changed: () => {
        this.#found()
        this.#changed()
      },
    })
    this.#endpoint = new HealthEndpoint({
      log,
      health: {
        readiness: () => this.readiness,
        metrics: () => this.#exposeMetrics(),
        hosts: () => this.#hosts(),
      },
      changed: () => this.#changed(),
    })
    this.#agent = new Agent(configuration, {
      log,
      openSource,
      node,
      version,
      identity: () => this.#identity,
      metrics: metrics ?? noMetrics,
      moved: () => void this.#retryRefused(),
      changed: () => this.#changed(),
    })
    this.#notifier = options.notify && this.#notifierTo(options.notify)
  }

  #notifierTo(to: NotifyTarget): SystemdNotifier {
    const problem = () =>
      this.#configurationError === undefined
        ? this.#hangingState.problem
        : 'its configuration file is invalid, and the previous one is in force'
    return new SystemdNotifier({
      to,
      log: this.#options.log,
      readiness: () => this.readiness,
      problem,
      isFound: () => this.#isFound,
      turn: () => this.#agent.turn(),
    })
  }

  /** Something that people would want to know of has changed. */
  #changed(): void {
    this.#status.changed()
    this.#hangingState.changed()
    this.#notifier?.changed()
  }

  #found(): void {
    if (this.#isFound) return
    this.#isFound = true
    this.#notifier?.changed()
  }

  /** Rejects where the server's address is impossible, or the source cannot start; nothing keeps running then. */
  static async start(options: DaemonOptions): Promise<Daemon> {
    returnMemoryWith(returnFreedMemory)
    const { configuration, log, version, node } = options
    // Without a server no scraper asks for metrics, and the library that counts them is not worth its memory.
    const metrics = configuration.server
      ? // eslint-disable-next-line no-restricted-syntax -- this is the start
        new (await import('./report/prometheus.js')).PrometheusMetrics(version, node)
      : undefined
    const daemon = new Daemon(options, metrics)
    try {
      daemon.#process = await ownIdentity()
      daemon.#lock = await lockState(configuration.stateDirectory, log)
      daemon.#identity = await agentIdentity(configuration.stateDirectory, log)
      await daemon.#restoreStatus()
      if (configuration.server) await daemon.#endpoint.open(configuration.server)
      await daemon.#agent.start()
    } catch (error) {
      await daemon.#endpoint.close()
      daemon.#status.abandon()
      daemon.#hangingState.close()
      daemon.#notifier?.close()
      await daemon.#lock?.release()
      throw error
    }
    daemon.#changed()
    daemon.#followFile(options.fingerprint ?? (await fingerprint(configuration.file)))
    const { directories, file } = configuration
    log.info(
      { version, configuration: file, address: daemon.address, directories: directories.length },
      `holdfast ${version} keeps ${directories.length === 1 ? '1 directory' : `${directories.length} directories`}`,
    )
    return daemon
  }

  /** Where health and metrics are served. */
  get address(): ServerAddress | undefined {
    return this.#endpoint.address
  }

  get readiness(): ReadyzAnswer {
    return readiness(
      [...this.#agent.states].map(({ facts: { configuration, intact, published, unread } }) => ({
        path: configuration.path,
        required: hasRequired(configuration),
        intact,
        reason: published && published.status !== 'True' ? published.reason : 'PublishFailed',
        message: unread ? 'not yet compared with its record' : (published?.message ?? ''),
      })),
    )
  }

  /**
   * Reads the configuration again and compares the disk. Never rejects: reports a mistake, and keeps the old configuration. The reload comes
   * to nothing where the agent ends meanwhile.
   */
  reload(): Promise<void> {
    this.#nextReload ??= this.#reloading.then(() => {
      this.#nextReload = undefined
      this.#reloading = this.#agent.ended.aborted ? Promise.resolve() : this.#reload()
      return this.#reloading
    })
    return this.#nextReload
  }

  /** With `reload: signal`, a file that has changed since waits for its own SIGHUP. */
  async #retryRefused(): Promise<void> {
    const seen = this.#waitsForMove
    if (seen !== undefined && (await fingerprint(this.#agent.configuration.file)) === seen) await this.reload()
  }

  /** Ends in order. Answers the directories whose disks do not answer, which keep this process: the agent's own, too. */
  async stop(): Promise<string[]> {
    this.#notifier?.stopping()
    this.#watch?.close()
    const stopping = this.#agent.stop()
    const reloaded = await endsWithin(this.#nextReload ?? this.#reloading, statusPatience)
    const [hanging] = await Promise.all([stopping, this.#endpoint.close()])
    if (!reloaded) hanging.push(this.#agent.configuration.file)
    this.#stoppedAt = new Date()
    const written = await endsWithin(this.#status.close(), statusPatience)
    this.#hangingState.close()
    // At once: a thread that waits for a disk can keep this process, and must not keep the next agent out.
    await this.#lock?.release()
    return written ? hanging : [...hanging, this.#agent.configuration.stateDirectory]
  }

  /** An agent that has lost its lock writes nothing to the state directory: another agent may have it. */
  async #hasLostLock(): Promise<boolean> {
    const isLost = (await this.#lock?.isLost()) === true
    if (!isLost || this.#isLost) return isLost
    this.#isLost = true
    const { stateDirectory } = this.#agent.configuration
    const message = `${stateDirectory}/agent.lock is gone, or another file has its name: nothing keeps another agent from ${stateDirectory}; this agent ends, and leaves what is published as it is; start it again: it takes the lock, or says who has it`
    this.#options.log.error({ reason: 'Busy', stateDirectory }, message)
    this.#loseLock()
    return true
  }

  /** Watches the configuration file: reads a change with `reload: auto`, and reports a missing file always. */
  #followFile(seen: string): void {
    const { file, reload } = this.#agent.configuration
    const follows = reload === 'auto'
    if (this.#watch !== undefined && this.#follows === follows) {
      this.#watch.read(seen)
      return
    }
    this.#watch?.close()
    this.#follows = follows
    this.#watch = new ConfigurationWatch({
      file,
      seen,
      rescans: follows,
      changed: () => {
        if (follows) void this.reload()
      },
      gone: (isGone) => this.#configurationGone(isGone),
      log: this.#options.log,
    })
  }

  #configurationGone(isGone: boolean): void {
    const { file } = this.#agent.configuration
    const { log } = this.#options
    const message = `${file} is gone; the configuration that was read from it stays in force: put it back, since the agent cannot start without it`
    if (isGone) {
      log.warn({ reason: 'ConfigurationInvalid', configuration: file }, message)
      this.#configurationError = message
      this.#agent.configurationRefused(message)
    } else {
      log.info({ configuration: file }, `${file} is there again`)
      if (this.#configurationError === message) this.#configurationError = undefined
    }
    this.#changed()
  }

  async #reload(): Promise<void> {
    const { ended, configuration } = this.#agent
    this.#notifier?.reloading()
    const seen = await fingerprint(configuration.file)
    this.#waitsForMove = undefined
    try {
      await this.#putInForce(await this.#options.load())
    } catch (error) {
      if (ended.aborted) return
      if (error instanceof StillMovingError) this.#waitsForMove = seen
      this.#refuse(error)
    }
    this.#reloadedAt = new Date()
    this.#followFile(seen)
    this.#agent.compareAll()
    this.#changed()
    this.#notifier?.reloaded()
  }

  /** Rejects, with the old one in force, where it cannot be; and where the agent ends meanwhile. */
  async #putInForce(after: AgentConfiguration): Promise<void> {
    const { ended, configuration: before } = this.#agent
    ended.throwIfAborted()
    if (after.stateDirectory !== before.stateDirectory) {
      throw new Error(
        `the configuration changes stateDirectory: restart the agent to use the new one; until then it uses ${before.stateDirectory}`,
      )
    }
    const moved = await this.#bind(after.server)
    try {
      ended.throwIfAborted()
      await this.#agent.reconfigure(after)
      ended.throwIfAborted()
    } catch (error) {
      await moved?.server?.close()
      throw error
    }
    if (moved) await this.#endpoint.use(moved.server)
    ended.throwIfAborted()
    this.#configurationError = undefined
    this.#inForceSince = new Date()
    this.#options.log.info({ configuration: after.file }, `${after.file} is in force`)
  }

  #refuse(error: unknown): void {
    const { log } = this.#options
    const { file } = this.#agent.configuration
    this.#configurationError = messageOf(error)
    if (error instanceof ConfigurationError) logProblems(log, error)
    const about = error instanceof ConfigurationError ? `${file} is invalid` : messageOf(error)
    const message = `${about}; the previous configuration stays in force`
    log.error({ reason: 'ConfigurationInvalid', configuration: file }, message)
    this.#agent.configurationRefused(message)
  }

  /** Binds a new address, beside the old one, before the rest of the configuration comes into force; undefined where it stays. */
  async #bind(after: ServerAddress | undefined): Promise<{ server: HealthServer | undefined } | undefined> {
    const { server: before } = this.#agent.configuration
    if (before?.host === after?.host && before?.port === after?.port) return undefined
    if (after && !this.#metrics) throw new Error('the configuration adds server: restart the agent to use it')
    return { server: after && (await this.#endpoint.bind(after)) }
  }

  /** Names of this node's server. */
  #hosts(): readonly string[] {
    const { server } = this.#agent.configuration
    return [this.#options.node, ...(server ? [server.host, ...server.hosts] : [])]
  }

  async #exposeMetrics(): Promise<{ type: string; text: string }> {
    if (!this.#metrics) return { type: 'text/plain', text: '' }
    const agent = this.#agent
    const waiting = agent.pending().filter(({ state }) => state === 'waiting')
    return this.#metrics.expose({
      isValid: this.#configurationError === undefined,
      inForceSince: this.#inForceSince,
      clientCertificate: agent.clientCertificateNotAfter(),
      directories: [...agent.states].map((state) => ({ facts: state.facts, running: agent.runningSeconds(state) })),
      dropPending: agent.dropStatus().map(({ path }) => path),
      waiting: waiting.map(({ key }) => key.split(' ', 1)[0] ?? ''),
    })
  }

  /** Conditions go on over a restart: what did not change keeps its transition time. */
  async #restoreStatus(): Promise<void> {
    const { configuration, log } = this.#options
    const { stateDirectory } = configuration
    const unreadable = (cause: string) => log.warn({}, `could not read the status of the previous run: ${cause}`)
    let late = false
    const reading = beside(stateDirectory, () => readStatusFile(stateDirectory)).then(
      (before) => {
        // What this run says of them is newer than what comes late.
        if (late) return
        for (const status of before?.directories ?? [])
          this.#agent.states.byPath(status.path)?.happened({ kind: 'restored', status })
      },
      (error: unknown) => unreadable(messageOf(error)),
    )
    late = !(await endsWithin(reading, statusPatience))
    if (late) unreadable(`${stateDirectory} does not answer`)
  }

  #statusFailed(error: unknown): void {
    this.#found()
    const message = `could not write the status file: ${messageOf(error)}`
    const reason = failureFrom(error).reason === 'NoSpace' ? 'NoSpace' : 'PublishFailed'
    this.#options.log[message === this.#statusProblem ? 'debug' : 'warn']({ reason }, message)
    this.#statusProblem = message
  }

  async #writeStatus(isDue: boolean): Promise<boolean> {
    for (const state of this.#agent.states) this.#agent.refresh(state)
    const isSign = await this.#hangingState.watch(
      async () => !(await this.#hasLostLock()) && (await this.#statusStore.write(this.#document(), isDue)),
    )
    this.#statusProblem = undefined
    this.#found()
    return isSign
  }

  #document(): CurrentStatus {
    const { file, digest } = this.#agent.configuration
    return {
      agent: {
        version: this.#options.version,
        node: this.#options.node,
        pid: process.pid,
        ...(this.#process ? { process: this.#process } : {}),
        configuration: { file, digest },
        ...(this.#reloadedAt ? { reloadedAt: this.#reloadedAt.toISOString() } : {}),
        startedAt: this.#startedAt.toISOString(),
        writtenAt: new Date().toISOString(),
        ...(this.#stoppedAt ? { stoppedAt: this.#stoppedAt.toISOString() } : {}),
        ...(this.#endpoint.problem === undefined ? {} : { serverProblem: this.#endpoint.problem }),
        ...(this.#configurationError === undefined ? {} : { configurationInvalid: this.#configurationError }),
      },
      directories: [...[...this.#agent.states].map(directoryStatus), ...this.#agent.dropStatus()],
      operations: this.#agent.pending().map(operationStatus),
    }
  }
}
