import { readdirSync, readFileSync } from 'node:fs'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { ApiObserver, ApiVerb } from '../../kubernetes/connection/client.js'
import { watchRestartReasons, type WatchRestartReason } from '../../objects/types.js'
import { clock } from '../../clock.js'
import { failingSince, isCurrent, type DirectoryFacts } from '../directory-state.js'
import { publishResults, type PublishResult } from '../outcome.js'
import { hookResults, type HookResult, type Metrics } from './report-metrics.js'
import { pendingHookNames } from './status-file.js'

/**
 * From an SSD's flush to a worn-out eMMC's, of the barrier. The time of a publication has a sum and a count for each directory, and no bounds:
 * those were half of what an agent of many directories sends to each scraper, and its disk's time is the barrier's.
 */
const durationBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** Milliseconds for which a difference on the disk counts as recent, and the most of a directory that are counted. */
const recent = 60 * 60_000
const mostRecent = 100

/** What the file label says of the agent's own certificate, which is in no directory. */
const clientCertificateLabels = { directory: '', file: 'client-certificate' }

/** Verbs, and the code of each one's success: together with 429 and no answer, these label sets are there from the start. */
const successes = {
  get: '200',
  list: '200',
  watch: '200',
  create: '201',
  patch: '200',
} as const satisfies Record<ApiVerb, string>

/** What client-go calls it, too. */
const noAnswer = '<error>'

/** Codes of the Kubernetes API that mean something of their own; what a proxy may answer besides is counted by its class. */
const codes = new Set([200, 201, 400, 401, 403, 404, 409, 410, 422, 429, 500, 502, 503, 504])

function codeLabel(status: number | undefined): string {
  if (status === undefined) return noAnswer
  return codes.has(status) ? String(status) : `${Math.floor(status / 100)}xx`
}

/** What the agent knows as it is asked, beside what it has counted. */
export interface AgentReading {
  /** The configuration file may come into force as it is. */
  readonly isValid: boolean
  /** When a configuration last came into force. */
  readonly inForceSince: Date
  readonly clientCertificate: Date | undefined
  readonly directories: readonly DirectoryReading[]
  /** Directories that are not configured any more, and are to be removed. */
  readonly dropPending: readonly string[]
  /** Of the operations that wait now: `publish`, `afterPublish`. */
  readonly waiting: readonly string[]
}

interface DirectoryReading {
  readonly facts: DirectoryFacts
  /** Seconds for which its operation on the disk has been running; 0: there is none. */
  readonly running: number
}

interface DirectoryGauge {
  readonly name: string
  readonly help: string
  /** undefined: no series. */
  readonly value: (reading: DirectoryReading) => number | undefined
}

const oneIf = (is: boolean) => (is ? 1 : 0)
const seconds = (date: Date) => Math.floor(date.getTime() / 1000)

/** What a directory is, by what the agent knows of it. */
const directoryGauges: readonly DirectoryGauge[] = [
  {
    name: 'holdfast_operation_running_seconds',
    help: 'How long the current operation on the disk has been running; 0: there is none.',
    value: ({ running }) => running,
  },
  {
    name: 'holdfast_last_publish_timestamp_seconds',
    help: 'When the content on the disk was published; 0: never; no series: its record is gone.',
    value({ facts: { record, desired } }) {
      if (record) return seconds(record.publishedAt)
      return desired ? undefined : 0
    },
  },
  {
    name: 'holdfast_last_confirmed_timestamp_seconds',
    help: 'When the source last confirmed that the published content is current; 0: never.',
    value: ({ facts: { confirmedAt } }) => (confirmedAt ? seconds(confirmedAt) : 0),
  },
  {
    name: 'holdfast_directory_ready',
    help: '1: intact on the disk, as recorded.',
    value: ({ facts }) => oneIf(facts.intact),
  },
  {
    name: 'holdfast_directory_current',
    help: '1: the newest known objects are published.',
    value: ({ facts }) => oneIf(isCurrent(facts)),
  },
  {
    name: 'holdfast_directory_failing_since_timestamp_seconds',
    help: 'Since when it is not current; 0: it is, or it is held.',
    value({ facts }) {
      const since = failingSince(facts)
      return since && seconds(since)
    },
  },
  {
    name: 'holdfast_directory_held',
    help: '1: an operator holds it as it is.',
    value: ({ facts }) => oneIf(facts.record?.hold !== undefined),
  },
  {
    name: 'holdfast_directory_moving',
    help: '1: it is the old path of one that has moved.',
    value: ({ facts }) => (facts.configuration.follows === undefined ? undefined : 1),
  },
]

/** What was counted of one directory. */
interface Counted {
  /** Names of its hooks with label sets. */
  hooks: readonly string[]
  /** Since when each hook fails. */
  readonly failing: Map<string, Date>
  /** When each recent difference was found, by the clock that no user can set. */
  drifts: number[]
}

/** The agent's metrics on prom-client: its own, and those of its process. Counters count what happens; a gauge is read at each scrape. */
export class PrometheusMetrics implements Metrics {
  readonly #registry = new Registry()
  readonly #valid = this.#gauge('holdfast_configuration_valid', '0: the configuration file was refused, or is gone.')
  readonly #reloaded = this.#gauge(
    'holdfast_last_reload_successful_timestamp_seconds',
    'When a configuration last came into force, at the start or by a reload.',
  )
  readonly #publishes = this.#counter('holdfast_publishes_total', 'Publications by result.', ['directory', 'result'])
  readonly #durations = this.#histogram(
    'holdfast_publish_duration_seconds',
    'Time from when a publication was due until it was durable.',
    ['directory'],
    [],
  )
  readonly #ofDirectories = directoryGauges.map(({ name, help, value }) => ({
    gauge: this.#gauge(name, help, ['directory']),
    value,
  }))
  readonly #dropPending = this.#gauge(
    'holdfast_directory_drop_pending',
    '1: it is not configured any more, and is to be removed.',
    ['directory'],
  )
  readonly #drifts = this.#counter('holdfast_drift_total', 'Differences from what was published, found on the disk.', [
    'directory',
  ])
  readonly #recentDrifts = this.#gauge(
    'holdfast_directory_recent_drifts',
    'Differences from what was published that were found within the last hour; no series: none.',
    ['directory'],
  )
  readonly #barrier = this.#histogram(
    'holdfast_barrier_duration_seconds',
    'One batch: staging, both barriers and the exchanges between them.',
    [],
    durationBuckets,
  )
  readonly #restarts = this.#counter('holdfast_watch_restarts_total', 'Watches started again, by reason.', ['reason'])
  readonly #requests = this.#counter('holdfast_api_requests_total', 'Requests to the API server.', ['verb', 'code'])
  readonly #watches = this.#gauge('holdfast_watches_open', 'Watches of the API server that are open now.')
  readonly #waiting = this.#gauge(
    'holdfast_operations_waiting',
    'Operations that wait: for their interval, or for another try after a failure.',
    ['operation'],
  )
  readonly #throttled = this.#counter(
    'holdfast_api_throttled_seconds_total',
    "How long requests have waited because of the agent's own limit, source.kubernetes.qps.",
  )
  readonly #hooks = this.#counter('holdfast_hooks_total', 'Hooks run after a publication.', [
    'directory',
    'hook',
    'result',
  ])
  readonly #hookFailingSince = this.#gauge(
    'holdfast_hook_failing_since_timestamp_seconds',
    'Since when a hook has failed and not run; absent: it has run, or is not due.',
    ['directory', 'hook'],
  )
  readonly #notAfter = this.#gauge(
    'holdfast_certificate_not_after_timestamp_seconds',
    'When the certificates of a file expire; directory "" is the agent itself.',
    ['directory', 'file'],
  )
  readonly #counted = new Map<string, Counted>()

  constructor(version: string, node: string) {
    const build = this.#gauge('holdfast_build_info', 'Always 1; the labels say what runs.', ['version', 'node'])
    build.set({ version, node }, 1)
    processMetrics(this.#registry)
    for (const reason of watchRestartReasons) this.#restarts.inc({ reason }, 0)
    for (const [verb, success] of Object.entries(successes)) {
      for (const code of [success, '429', noAnswer]) this.#requests.inc({ verb, code }, 0)
    }
  }

  #gauge<Label extends string = never>(name: string, help: string, labelNames: Label[] = []): Gauge<Label> {
    return new Gauge({ name, help, labelNames, registers: [this.#registry] })
  }

  #counter<Label extends string = never>(name: string, help: string, labelNames: Label[] = []): Counter<Label> {
    return new Counter({ name, help, labelNames, registers: [this.#registry] })
  }

  #histogram<Label extends string>(name: string, help: string, labelNames: Label[], buckets: number[]) {
    return new Histogram({ name, help, labelNames, registers: [this.#registry], buckets })
  }

  publish(directory: string, result: PublishResult, duration: number | undefined): void {
    this.#of(directory)
    this.#publishes.inc({ directory, result })
    if (duration !== undefined) this.#durations.observe({ directory }, duration)
  }

  drift(directory: string): void {
    const counted = this.#of(directory)
    counted.drifts = [...counted.drifts, clock.now()].slice(-mostRecent)
    this.#drifts.inc({ directory })
  }

  barrier(duration: number): void {
    this.#barrier.observe(duration)
  }

  hook(directory: string, hook: string, result: HookResult): void {
    const { failing } = this.#of(directory)
    this.#hooks.inc({ directory, hook, result })
    if (result === 'success') failing.delete(hook)
    else if (!failing.has(hook)) failing.set(hook, new Date())
  }

  watchRestarted(reason: WatchRestartReason): void {
    this.#restarts.inc({ reason })
  }

  readonly api: ApiObserver = {
    requested: (verb, status) => this.#requests.inc({ verb, code: codeLabel(status) }),
    throttled: (duration) => this.#throttled.inc(duration),
    watches: (change) => this.#watches.inc(change),
  }

  /** The text exposition format, and its content type. */
  async expose(reading: AgentReading): Promise<{ type: string; text: string }> {
    this.#valid.set(oneIf(reading.isValid))
    this.#reloaded.set(seconds(reading.inForceSince))
    for (const operation of ['publish', 'afterPublish'])
      this.#waiting.set({ operation }, reading.waiting.filter((each) => each === operation).length)
    this.#dropPending.reset()
    for (const directory of reading.dropPending) this.#dropPending.set({ directory }, 1)
    this.#notAfter.reset()
    const { clientCertificate } = reading
    if (clientCertificate) this.#notAfter.set(clientCertificateLabels, seconds(clientCertificate))
    this.#readDirectories(reading.directories)
    return { type: this.#registry.contentType, text: await this.#registry.metrics() }
  }

  #readDirectories(directories: readonly DirectoryReading[]): void {
    const paths = new Set(directories.map(({ facts }) => facts.configuration.path))
    for (const directory of this.#counted.keys()) if (!paths.has(directory)) this.#forget(directory)
    for (const gauge of [this.#recentDrifts, this.#hookFailingSince]) gauge.reset()
    for (const { gauge } of this.#ofDirectories) gauge.reset()
    for (const reading of directories) {
      const { facts } = reading
      const directory = facts.configuration.path
      for (const { gauge, value } of this.#ofDirectories) {
        const is = value(reading)
        if (is !== undefined) gauge.set({ directory }, is)
      }
      for (const { file, notAfter } of facts.passed.certificates)
        this.#notAfter.set({ directory, file }, seconds(notAfter))
      const counted = this.#of(directory)
      counted.drifts = counted.drifts.filter((at) => clock.now() - at < recent)
      // Of a thousand directories, hardly one has any.
      if (counted.drifts.length > 0) this.#recentDrifts.set({ directory }, counted.drifts.length)
      this.#readHooks(facts, counted)
    }
  }

  #readHooks(facts: DirectoryFacts, counted: Counted): void {
    const { path: directory, afterPublish } = facts.configuration
    const names = afterPublish.map(({ name }) => name)
    this.#removeHooks(
      directory,
      counted.hooks.filter((hook) => !names.includes(hook)),
    )
    for (const hook of names) for (const result of hookResults) this.#hooks.inc({ directory, hook, result }, 0)
    counted.hooks = names
    const due = pendingHookNames(facts)
    for (const [hook, since] of counted.failing) {
      // Another process has run it, or a rollback made it needless.
      if (!due.includes(hook)) counted.failing.delete(hook)
      else this.#hookFailingSince.set({ directory, hook }, seconds(since))
    }
  }

  #removeHooks(directory: string, hooks: readonly string[]): void {
    for (const hook of hooks) for (const result of hookResults) this.#hooks.remove({ directory, hook, result })
  }

  /** What was counted of a directory. Its label sets begin at 0. */
  #of(directory: string): Counted {
    const known = this.#counted.get(directory)
    if (known) return known
    const counted: Counted = { hooks: [], failing: new Map(), drifts: [] }
    this.#counted.set(directory, counted)
    for (const result of publishResults) this.#publishes.inc({ directory, result }, 0)
    this.#drifts.inc({ directory }, 0)
    this.#durations.zero({ directory })
    return counted
  }

  #forget(directory: string): void {
    this.#removeHooks(directory, this.#of(directory).hooks)
    this.#counted.delete(directory)
    for (const result of publishResults) this.#publishes.remove({ directory, result })
    this.#drifts.remove({ directory })
    this.#durations.remove({ directory })
  }
}

/**
 * The process's own figures, by the names of Prometheus' client libraries, read at each scrape. prom-client's own set reads the same, and has
 * some thirty metrics of Node besides, with a timer and a histogram that run between scrapes. The agent leaves out the size of the address
 * space: V8 reserves gigabytes of it.
 */
function processMetrics(registry: Registry): void {
  const registers = [registry]
  const gauge = (name: string, help: string, read: () => number): void => {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read())
      },
    })
  }
  new Counter({
    name: 'process_cpu_seconds_total',
    help: 'Processor time of the agent, user and system.',
    registers,
    collect() {
      const { user, system } = process.cpuUsage()
      this.reset()
      this.inc((user + system) / 1e6)
    },
  })
  gauge('process_resident_memory_bytes', 'Memory of the agent that is resident, with what it shares.', () =>
    process.memoryUsage.rss(),
  )
  const started = Math.floor(Date.now() / 1000 - process.uptime())
  gauge('process_start_time_seconds', 'When the agent started.', () => started)
  // Without the descriptor that reads the list.
  gauge('process_open_fds', 'Open descriptors.', () => readdirSync('/proc/self/fd').length - 1)
  gauge('process_max_fds', 'Most descriptors that may be open.', () =>
    Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1] ?? Infinity),
  )
}
