import { closeSync, openSync, readFileSync } from 'node:fs'
import t from 'tap'
import { prometheusMetrics } from '../../../src/agent/report/prometheus.js'

/** The agent's figures of the process that it is, as Prometheus' client libraries name them. */
async function processFigures(): Promise<Record<string, number>> {
  const { text } = await prometheusMetrics('1', 'n').expose()
  return Object.fromEntries(
    [...text.matchAll(/^(process_\w+) (\S+)$/gm)].map(([, name = '', value]) => [name, Number(value)]),
  )
}

await t.test(
  '/metrics has the processor time, memory, descriptors and start of the process, as the kernel has them',
  async (t) => {
    const before = process.cpuUsage()
    const found = await processFigures()
    t.same(Object.keys(found).sort(), [
      'process_cpu_seconds_total',
      'process_max_fds',
      'process_open_fds',
      'process_resident_memory_bytes',
      'process_start_time_seconds',
    ])
    const after = process.cpuUsage()
    const seconds = found['process_cpu_seconds_total'] ?? NaN
    t.ok(seconds >= (before.user + before.system) / 1e6 && seconds <= (after.user + after.system) / 1e6)
    const resident = Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1]) * 1024
    t.ok(Math.abs((found['process_resident_memory_bytes'] ?? NaN) - resident) < resident / 4, `${resident}`)
    t.equal(
      found['process_max_fds'],
      Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1]),
    )
    const start = Date.now() / 1000 - process.uptime()
    t.ok(Math.abs((found['process_start_time_seconds'] ?? NaN) - start) <= 1)
  },
)

await t.test('each scrape has new figures, in at most 1,200 bytes', async (t) => {
  const before = await processFigures()
  const opened = Array.from({ length: 8 }, () => openSync('/dev/null', 'r'))
  const after = await processFigures()
  for (const descriptor of opened) closeSync(descriptor)
  t.ok((after['process_open_fds'] ?? NaN) >= (before['process_open_fds'] ?? NaN) + 4)
  t.ok((after['process_cpu_seconds_total'] ?? NaN) > (before['process_cpu_seconds_total'] ?? NaN))
  t.equal(after['process_start_time_seconds'], before['process_start_time_seconds'])
  const { text } = await prometheusMetrics('1', 'n').expose()
  const own = text
    .split('\n')
    .filter((line) => line.includes('process_'))
    .join('\n')
  t.ok(own.length <= 1200, `${own.length} bytes`)
})
