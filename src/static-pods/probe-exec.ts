import { spawn } from 'node:child_process'
import { Deadline } from '../deadline.js'
import { messageOf } from './failure.js'
import type { Probe, Verdict } from './readiness.js'

/** Milliseconds for the command; then its whole process group is ended. */
const defaultTimeout = 10_000

/** Nothing of our own environment: it may hold tokens. */
const environment = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/' }

/** Runs a command with /bin/sh; exit code 0 is ready. REVISION is in its environment. Its output is not read: it may hold secrets. */
export function execProbe(command: string, revision: number, timeout = defaultTimeout): Probe {
  return {
    name: 'command',
    async ask(_, signal): Promise<Verdict> {
      const deadline = new Deadline(timeout, signal)
      try {
        return await run(command, revision, deadline)
      } catch (error) {
        return { ready: false, message: messageOf(error) }
      } finally {
        deadline.dispose()
      }
    },
  }
}

function run(command: string, revision: number, { signal: limit, milliseconds }: Deadline): Promise<Verdict> {
  return new Promise((resolve, reject) => {
    const child = spawn('/bin/sh', ['-c', command], {
      ...{ cwd: '/', detached: true, stdio: 'ignore' },
      env: { ...environment, REVISION: String(revision) },
    })
    const stop = (): void => {
      if (child.pid === undefined) return
      try {
        process.kill(-child.pid, 'SIGKILL')
      } catch {
        // ESRCH: it has ended meanwhile.
      }
    }
    limit.addEventListener('abort', stop, { once: true })
    child.once('error', (error) => {
      limit.removeEventListener('abort', stop)
      reject(error)
    })
    child.once('exit', (code, signal) => {
      limit.removeEventListener('abort', stop)
      if (code === 0) resolve({ ready: true })
      else if (limit.aborted) resolve({ ready: false, message: `not done after ${milliseconds / 1000} s` })
      else resolve({ ready: false, message: code === null ? `ended by ${signal}` : `exit code ${code}` })
    })
  })
}
