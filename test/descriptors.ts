/** How many file descriptors another process may have. */
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'

/** Lets a process open so many more files than it has open, or as many as before. */
export function limitDescriptors(pid: number, spare: number | 'as before'): void {
  const open = new Set(readdirSync(`/proc/${pid}/fd`).map(Number))
  let lowest = 0
  while (open.has(lowest)) lowest++
  const limit = spare === 'as before' ? 1024 : lowest + spare
  // The soft limit alone, so that this user can raise it again.
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${limit}:`])
}

/** How many a process has. */
export function openDescriptors(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length
}
