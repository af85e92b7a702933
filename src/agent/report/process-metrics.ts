import { readdirSync, readFileSync } from 'node:fs'
import { Counter, Gauge, type Registry } from 'prom-client'

/**
 * The process's own figures, by the names of Prometheus' client libraries, read at each scrape. prom-client's own set reads the same, and has
 * some thirty metrics of Node besides, with a timer and a histogram that run between scrapes. The size of the address space is left out: V8
 * reserves gigabytes of it.
 */
export function processMetrics(registry: Registry): void {
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
