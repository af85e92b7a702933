/** Other processes, each of which may end between two looks: open(2) answers ENOENT then, read(2) and kill(2) ESRCH. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { codeOf } from '../src/errors.js'

/** What a file of /proc says of a process or a thread; empty where that has ended. */
export function readProc(path: string): string {
  return unlessEnded(() => readFileSync(path, 'latin1')) ?? ''
}

/** Sends a signal; a process that has ended needs none. */
export function signalRunning(pid: number, name: NodeJS.Signals): void {
  unlessEnded(() => process.kill(pid, name))
}

/** The letter of proc_pid_stat(5): `D` for a sleep that no signal interrupts, `Z` for a zombie; undefined where it has ended. */
export function stateOf(directory: string): string | undefined {
  // The name before it may hold anything, parentheses too.
  return /.*\) (\S)/s.exec(readProc(`${directory}/stat`))?.[1]
}

export interface TcpConnection {
  /** Address and port, as the table writes them. */
  readonly remote: string
  readonly state: string
  /** Bytes that the peer has not received, a colon, and bytes that the process has not read. */
  readonly queues: string
  readonly inode: string
}

/** States of a `TcpConnection`: include/net/tcp_states.h. */
export const tcpStates = { established: '01', synSent: '02', synReceived: '03' }

/** The process's TCP connections, by the tables of proc_pid_net(5), whose numbers are hexadecimal. */
export function tcpConnections(pid: number): TcpConnection[] {
  const files = readdirSync(`/proc/${pid}/fd`).map((fd) => unlessEnded(() => readlinkSync(`/proc/${pid}/fd/${fd}`)))
  const sockets = new Set(files)
  return ['tcp', 'tcp6']
    .flatMap((table) => readProc(`/proc/${pid}/net/${table}`).split('\n'))
    .map((line) => line.trim().split(/\s+/))
    .map(([, , remote = '', state = '', queues = '', , , , , inode = '']) => ({ remote, state, queues, inode }))
    .filter(({ inode }) => sockets.has(`socket:[${inode}]`))
}

function unlessEnded<T>(ask: () => T): T | undefined {
  try {
    return ask()
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes(codeOf(error) ?? '')) return undefined
    throw error
  }
}
