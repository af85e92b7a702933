import { readdirSync, readFileSync } from 'node:fs'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { ApiVerb } from '../../kubernetes/connection/client.js'
import { watchRestartReasons } from '../../objects/types.js'
import { clock } from '../../clock.js'
import { publishResults } from '../outcome.js'
import { hookResults, type Metrics } from './report-metrics.js'

export interface PrometheusMetrics extends Metrics {
  /** Whether the configuration file may come into force as it is, and when one last did. */
  configuration(valid: boolean, inForceSince: Date): void
  /** The text exposition format, and its content type. */
  expose(): Promise<{ type: string; text: string }>
}

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

/** The agent's metrics on prom-client: its own, and those of its process. */
export function prometheusMetrics(version: string, node: string): PrometheusMetrics {
  const registry = new Registry()
  const registers = [registry]
  const gauge = <Label extends string>(name: string, help: string, labelNames: Label[]) =>
    new Gauge({ name, help, labelNames, registers })
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[]) =>
    new Counter({ name, help, labelNames, registers })
  const histogram = <Label extends string>(name: string, help: string, labelNames: Label[], buckets: number[]) =>
    new Histogram({ name, help, labelNames, registers, buckets })

  const running = gauge(
    'holdfast_operation_running_seconds',
    'How long the current operation on the disk has been running; 0: there is none.',
    ['directory'],
  )

  const build = gauge('holdfast_build_info', 'Always 1; the labels say what runs.', ['version', 'node'])
  const valid = gauge('holdfast_configuration_valid', '0: the configuration file was refused, or is gone.', [])
  const reloaded = gauge(
    'holdfast_last_reload_successful_timestamp_seconds',
    'When a configuration last came into force, at the start or by a reload.',
    [],
  )
  const publishes = counter('holdfast_publishes_total', 'Publications by result.', ['directory', 'result'])
  const durations = histogram(
    'holdfast_publish_duration_seconds',
    'Time from when a publication was due until it was durable.',
    ['directory'],
    [],
  )
  const published = gauge(
    'holdfast_last_publish_timestamp_seconds',
    'When the content on the disk was published; 0: never.',
    ['directory'],
  )
  const ready = gauge('holdfast_directory_ready', '1: intact on the disk, as recorded.', ['directory'])
  const current = gauge('holdfast_directory_current', '1: the newest known objects are published.', ['directory'])
  const failingSince = gauge(
    'holdfast_directory_failing_since_timestamp_seconds',
    'Since when it is not current; 0: it is, or it is held.',
    ['directory'],
  )
  const held = gauge('holdfast_directory_held', '1: an operator holds it as it is.', ['directory'])
  const moving = gauge('holdfast_directory_moving', '1: it is the old path of one that has moved.', ['directory'])
  const dropPending = gauge(
    'holdfast_directory_drop_pending',
    '1: it is not configured any more, and is to be removed.',
    ['directory'],
  )
  const drift = counter('holdfast_drift_total', 'Differences from what was published, found on the disk.', [
    'directory',
  ])
  const recentDrifts = gauge(
    'holdfast_directory_recent_drifts',
    'Differences from what was published that were found within the last hour; no series: none.',
    ['directory'],
  )
  const barrier = histogram(
    'holdfast_barrier_duration_seconds',
    'One batch: staging, both barriers and the exchanges between them.',
    [],
    durationBuckets,
  )
  const restarts = counter('holdfast_watch_restarts_total', 'Watches started again, by reason.', ['reason'])
  const requests = counter('holdfast_api_requests_total', 'Requests to the API server.', ['verb', 'code'])
  const watches = gauge('holdfast_watches_open', 'Watches of the API server that are open now.', [])
  const waiting = gauge(
    'holdfast_operations_waiting',
    'Operations that wait: for their interval, or for another try after a failure.',
    ['operation'],
  )
  const throttled = counter(
    'holdfast_api_throttled_seconds_total',
    "How long requests have waited because of the agent's own limit, source.kubernetes.qps.",
    [],
  )
  const confirmed = gauge(
    'holdfast_last_confirmed_timestamp_seconds',
    'When the source last confirmed that the published content is current; 0: never.',
    ['directory'],
  )
  const hooks = counter('holdfast_hooks_total', 'Hooks run after a publication.', ['directory', 'hook', 'result'])
  const hookFailingSince = gauge(
    'holdfast_hook_failing_since_timestamp_seconds',
    'Since when a hook has failed and not run; absent: it has run, or is not due.',
    ['directory', 'hook'],
  )
  const notAfter = gauge(
    'holdfast_certificate_not_after_timestamp_seconds',
    'When the certificates of a file expire; directory "" is the agent itself.',
    ['directory', 'file'],
  )

  processMetrics(registry)
  build.set({ version, node }, 1)
  for (const reason of watchRestartReasons) restarts.inc({ reason }, 0)
  for (const [verb, success] of Object.entries(successes)) {
    for (const code of [success, '429', noAnswer]) requests.inc({ verb, code }, 0)
  }
  interface FollowedDirectory {
    hooks: Set<string>
    readonly failing: Set<string>
    files: Set<string>
    /** When each recent difference was found, by the clock that no user can set. */
    drifts: number[]
  }
  const followed = new Map<string, FollowedDirectory>()
  const seconds = (date: Date) => Math.floor(date.getTime() / 1000)
  /** A hook that none of these names has run, or need not any more. */
  const keepFailing = (directory: string, names: readonly string[]): void => {
    const failing = followed.get(directory)?.failing ?? new Set<string>()
    for (const hook of failing) {
      if (names.includes(hook)) continue
      failing.delete(hook)
      hookFailingSince.remove({ directory, hook })
    }
  }

  return {
    configuration(isValid, since) {
      valid.set(isValid ? 1 : 0)
      reloaded.set(seconds(since))
    },
    follow(directory, names) {
      const none = { hooks: new Set<string>(), failing: new Set<string>(), files: new Set<string>(), drifts: [] }
      const known = followed.get(directory) ?? none
      followed.set(directory, known)
      for (const result of publishResults) publishes.inc({ directory, result }, 0)
      for (const metric of [published, ready, current, held, confirmed, drift, running]) metric.inc({ directory }, 0)
      durations.zero({ directory })
      for (const hook of known.hooks) {
        if (!names.includes(hook)) for (const result of hookResults) hooks.remove({ directory, hook, result })
      }
      for (const hook of names) for (const result of hookResults) hooks.inc({ directory, hook, result }, 0)
      known.hooks = new Set(names)
      keepFailing(directory, names)
    },
    forget(directory) {
      const known = followed.get(directory)
      keepFailing(directory, [])
      followed.delete(directory)
      for (const result of publishResults) publishes.remove({ directory, result })
      for (const metric of [
        published,
        ready,
        current,
        failingSince,
        held,
        moving,
        confirmed,
        drift,
        recentDrifts,
        durations,
        running,
      ])
        metric.remove({ directory })
      for (const hook of known?.hooks ?? []) {
        for (const result of hookResults) hooks.remove({ directory, hook, result })
      }
      for (const file of known?.files ?? []) notAfter.remove({ directory, file })
    },
    publish(directory, result, duration) {
      publishes.inc({ directory, result })
      if (duration !== undefined) durations.observe({ directory }, duration)
    },
    publishedAt: (directory, date) => published.set({ directory }, seconds(date)),
    ready: (directory, value) => ready.set({ directory }, value ? 1 : 0),
    current(directory, value, since) {
      current.set({ directory }, value ? 1 : 0)
      if (since === undefined) failingSince.remove({ directory })
      else failingSince.set({ directory }, seconds(since))
    },
    held: (directory, value) => held.set({ directory }, value ? 1 : 0),
    moving(directory, value) {
      if (value) moving.set({ directory }, 1)
      else moving.remove({ directory })
    },
    drift(directory) {
      drift.inc({ directory })
      const known = followed.get(directory)
      if (known) known.drifts = [...known.drifts, clock.now()].slice(-mostRecent)
    },
    dropPending(directory, pending) {
      if (pending) dropPending.set({ directory }, 1)
      else dropPending.remove({ directory })
    },
    barrier: (duration) => barrier.observe(duration),
    watchRestarted: (reason) => restarts.inc({ reason }),
    api: {
      requested: (verb, status) => requests.inc({ verb, code: codeLabel(status) }),
      throttled: (duration) => throttled.inc(duration),
      watches: (change) => watches.inc(change),
    },
    confirmed: (directory, date) => confirmed.set({ directory }, seconds(date)),
    hook(directory, hook, result) {
      hooks.inc({ directory, hook, result })
      const failing = followed.get(directory)?.failing
      if (result === 'success')
        keepFailing(
          directory,
          [...(failing ?? [])].filter((name) => name !== hook),
        )
      else if (failing?.has(hook) === false) {
        failing.add(hook)
        hookFailingSince.set({ directory, hook }, seconds(new Date()))
      }
    },
    hooksDue: keepFailing,
    certificates(directory, dates) {
      const known = followed.get(directory)
      for (const file of known?.files ?? []) notAfter.remove({ directory, file })
      for (const { file, notAfter: date } of dates) notAfter.set({ directory, file }, seconds(date))
      if (known) known.files = new Set(dates.map(({ file }) => file))
    },
    clientCertificate(date) {
      if (date === undefined) notAfter.remove(clientCertificateLabels)
      else notAfter.set(clientCertificateLabels, seconds(date))
    },
    running: (directory, seconds) => running.set({ directory }, seconds),
    waiting(operations) {
      for (const operation of ['publish', 'afterPublish']) waiting.set({ operation }, 0)
      for (const operation of operations) waiting.inc({ operation })
    },
    async expose() {
      for (const [directory, known] of followed) {
        known.drifts = known.drifts.filter((at) => clock.now() - at < recent)
        // Of a thousand directories, hardly one has any.
        if (known.drifts.length === 0) recentDrifts.remove({ directory })
        else recentDrifts.set({ directory }, known.drifts.length)
      }
      return { type: registry.contentType, text: await registry.metrics() }
    },
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
