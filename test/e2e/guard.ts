/**
 * The test process's directory and the programs that it has started, both gone when it ends, also by SIGKILL.
 *
 * A small shell holds the list of process groups. It reads from a pipe whose other end is this process's alone, so that the
 * end of this process, SIGKILL included, is the end of the file: then it kills the groups and removes the directory.
 * HOLDFAST_E2E_KEEP=1 keeps the directory, to read the logs.
 */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

/** The directory of this process's tests. Gone soon after its end. */
export const workingDirectory = mkdtempSync(join(tmpdir(), 'holdfast-e2e-'))

/** Its end ends each program that was started for it, and it hears why one failed: a test of tap, or `withOwner`. */
export type Owner = Pick<Test, 'teardown' | 'passing' | 'comment'>

const script = `
groups=
while read -r verb group; do
  case $verb in
    started) groups="$groups $group" ;;
    ended) kept=; for each in $groups; do [ "$each" = "$group" ] || kept="$kept $each"; done; groups=$kept ;;
  esac
done
for each in $groups; do kill -s KILL -- "-$each"; done
[ -n "$HOLDFAST_E2E_KEEP" ] || { sleep 0.2; rm -rf -- "$1"; }
`

// A separate process group: Ctrl-C at the terminal ends the tests, and must not end the guard that cleans up after them.
const guard = spawn('/bin/sh', ['-c', script, 'guard', workingDirectory], {
  detached: true,
  stdio: ['pipe', 'ignore', 'ignore'],
})
guard.unref()
if (guard.stdin instanceof Socket) guard.stdin.unref()

/** Starts a program as the leader of a new process group, which does not outlive this process. */
export function startProcess(program: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  const child = spawn(program, args, { ...options, detached: true })
  const { pid } = child
  if (pid !== undefined) {
    guard.stdin.write(`started ${pid}\n`)
    child.once('exit', () => {
      guard.stdin.write(`ended ${pid}\n`)
    })
  }
  return child
}

/** Sends the signal to the process and waits for its end; SIGKILLs its whole group after `patience` milliseconds. */
export async function endProcess(
  child: ChildProcess,
  signal: NodeJS.Signals,
  patience = 15_000,
): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
  if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
    const group = -child.pid
    const ended = once(child, 'exit')
    child.kill(signal)
    const timer = setTimeout(() => process.kill(group, 'SIGKILL'), patience)
    await ended
    clearTimeout(timer)
  }
  return { code: child.exitCode, signal: child.signalCode }
}

/** Gives work outside of tests an owner, which ends with it, the last thing that was started first. */
export async function withOwner<Found>(task: (owner: Owner) => Promise<Found>): Promise<Found> {
  const ends: (() => unknown)[] = []
  let passing = false
  try {
    const found = await task({
      teardown: (end: () => unknown) => void ends.unshift(end),
      passing: () => passing,
      comment: (...text: unknown[]) => console.error(...text),
    })
    passing = true
    return found
  } finally {
    for (const end of ends) await end()
  }
}
