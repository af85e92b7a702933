/** Linux's figures of a process: memory, processor time, connections. */
import { execFileSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { readProc, tcpConnections, tcpStates } from '../processes.js'

/** Kibibytes of one line of /proc/PID/smaps_rollup: `Anonymous`, `Rss`. */
export function memory(pid: number, line: 'Anonymous' | 'Rss' | 'Pss'): number {
  const found = new RegExp(`^${line}: +(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))
  if (!found) throw new Error(`/proc/${pid}/smaps_rollup has no ${line}`)
  return Number(found[1])
}

/** Milliseconds of processor time that the process has used so far, in user and kernel mode. */
export function processorTime(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name, second of the fields, may hold spaces; it ends with the last parenthesis. See proc_pid_stat(5).
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (1000 / ticksPerSecond) * (Number(fields[11]) + Number(fields[12]))
}

/** How often threads of the process have waited for something and woken up so far: those that have ended are not counted. */
export function wakeups(pid: number): number {
  const tasks = readdirSync(`/proc/${pid}/task`)
  return tasks.reduce((sum, task) => sum + voluntarySwitches(`/proc/${pid}/task/${task}/status`), 0)
}

/** 0 where the thread has ended meanwhile. */
function voluntarySwitches(status: string): number {
  return Number(/^voluntary_ctxt_switches:\s+(\d+)$/m.exec(readProc(status))?.[1] ?? 0)
}

const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

/** How many established TCP connections the process has to this port of 127.0.0.1. */
export function connections(pid: number, port: number): number {
  const remote = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`
  return tcpConnections(pid).filter((one) => one.remote === remote && one.state === tcpStates.established).length
}
