import { messageOf } from '../../errors.js'
import { spawn } from 'node:child_process'
import { Deadline } from '../../deadline.js'
import type { Probe, ProbeResult } from './readiness.js'

/** Milliseconds for the command; then its whole process group is ended. */
const defaultTimeout = 10_000

/** Where the distributions have their programs, then Flatcar and k3s on a read-only /usr, then RKE2 its kubectl, crictl and ctr. */
const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin:/var/lib/rancher/rke2/bin'

/** Nothing of our own environment: it may hold tokens; and a resume at boot has another one than the shell that began the rollout. */
const environment = { PATH: path, HOME: '/' }

const notRun = `name a program that is there and executable, with its path, or in PATH: ${path}`

/**
 * Runs a command with /bin/sh; exit code 0 is ready, and with 126 or 127 the shell says that it cannot run it (POSIX, Shell Command
 * Language, 2.8.2). The manifest's REVISION is in its environment. Its output is not read: it may hold secrets.
 */
export function execProbe(command: string, timeout = defaultTimeout): Probe {
  return {
    name: 'command',
    async ask(manifest, signal): Promise<ProbeResult> {
      const deadline = new Deadline(timeout, signal)
      try {
        return await run(command, manifest.revision ?? '', deadline)
      } catch (error) {
        return { state: 'cannot-ask', message: messageOf(error), advice: notRun }
      } finally {
        deadline.dispose()
      }
    },
  }
}

function run(command: string, revision: string, { signal: limit, milliseconds }: Deadline): Promise<ProbeResult> {
  return new Promise((resolve, reject) => {
    const child = spawn('/bin/sh', ['-c', command], {
      cwd: '/',
      detached: true,
      stdio: 'ignore',
      env: { ...environment, REVISION: revision },
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
      if (code === 0) resolve({ state: 'ready' })
      else if (limit.aborted) resolve({ state: 'not-ready', message: `still running after ${milliseconds / 1000} s` })
      else if (code === 126 || code === 127) {
        const message = `exit code ${code}: the shell could not run the command`
        resolve({ state: 'cannot-ask', message, advice: notRun })
      } else resolve({ state: 'not-ready', message: code === null ? `ended by ${signal}` : `exit code ${code}` })
    })
  })
}
