/** Processes that hold something open, as the programs of a node do. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Test } from 'tap'

/**
 * Runs a shell command that ends with `hold`, which says that everything is in place and then waits; answers the process's ID.
 * It ends with the test. `under`: what starts the shell, such as unshare(1).
 */
export async function holder(t: Test, command: string, under: readonly string[] = [], cwd = '/'): Promise<number> {
  const hold = 'hold() { echo held; read _; }; '
  const words = [...under, 'sh', '-c', `${hold}${command}`]
  // env(1) gives its place to its command.
  const child = spawn('env', words, { cwd, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  await Promise.race([
    once(child.stdout, 'data'),
    ended.then(([code]) => Promise.reject(new Error(`${command}: exit ${String(code)}`))),
  ])
  return child.pid ?? -1
}
