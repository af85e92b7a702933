/** A private mount namespace: no other process sees its mounts, which vanish with the last process in it, by any end. */
import { spawn } from 'node:child_process'

const marker = 'HOLDFAST_PRIVATE_MOUNTS'

/** How often the process inside looks whether the one outside still waits for it, in milliseconds. */
const watchInterval = 1000

/**
 * Runs this very command again inside a new mount namespace and ends with its exit code; returns at once in there. To be
 * called before anything else, by root. Signals are passed on, so that a terminal's Ctrl-C arrives twice.
 */
export async function enterPrivateMounts(): Promise<void> {
  if (process.env[marker] === '1') {
    endWithParent()
    return
  }
  const command = [process.execPath, ...process.execArgv, ...process.argv.slice(1)]
  const child = spawn('unshare', ['--mount', '--propagation', 'private', '--', ...command], {
    stdio: 'inherit',
    env: { ...process.env, [marker]: '1' },
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal))
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (exitCode) => resolve(exitCode ?? 1))
  })
  process.exit(code)
}

/** A kill of the parent outside means this process, too. */
function endWithParent(): void {
  const parent = process.ppid
  setInterval(() => {
    if (process.ppid !== parent) process.kill(process.pid, 'SIGTERM')
  }, watchInterval).unref()
}
