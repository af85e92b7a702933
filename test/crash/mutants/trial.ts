import { readFileSync } from 'node:fs'
import { runGroup } from '../process-group.js'
import { allPlays } from '../suites.js'
import { type Answer, answerOf } from './answer.js'
import type { Item } from './battery.js'

/** Where a copy may write; the rest of the machine is read-only to it, where this user has the right to arrange that. */
export interface Room {
  readonly directory: string
  readonly temporary: string
  readonly isolated: boolean
}

const isolation = 'mount --bind "$0" "$0" && mount -o remount,bind,ro / && exec "$@"'

/** A program of the copy with its arguments, as it is started there. */
export function inRoom(
  { directory, temporary, isolated }: Room,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): { command: readonly string[]; options: { cwd: string; env: NodeJS.ProcessEnv } } {
  const node = ['nice', '-n', '2', process.execPath, ...args]
  return {
    command: isolated
      ? ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', isolation, temporary, ...node]
      : node,
    options: {
      cwd: directory,
      env: {
        PATH: process.env['PATH'] ?? '',
        HOLDFAST_DIST: directory,
        HOLDFAST_SEED: '1',
        TMPDIR: temporary,
        ...allPlays,
        ...env,
      },
    },
  }
}

/** Runs it on the copy as a new process, to the first failure; where that is no answer, to the end. `patience`: seconds. */
export async function tryItem(item: Item, room: Room, patience: number): Promise<Answer> {
  const answer = await run(item, room, patience, true)
  return answer.verdict === 'breaks' ? run(item, room, patience, false) : answer
}

async function run({ name, command }: Item, room: Room, patience: number, bail: boolean): Promise<Answer> {
  const timeout = `${Math.ceil(patience)}`
  const env = { TAP_TIMEOUT: timeout, ...(bail && { TAP_BAIL: '1' }) }
  const { command: started, options } = inRoom(room, command, env)
  const [first = '', ...rest] = started
  const { code, hangs, output, errors } = await runGroup(first, rest, options, patience * 1000)
  return answerOf(name, hangs ? null : (code ?? -1), output, errors)
}

/** CPU-seconds of all processes that this one has started and that have ended. */
export function secondsOfChildren(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  // cutime and cstime, fields 16 and 17 of proc_pid_stat(5); the first two are cut off. In ticks, a hundred a second on Linux.
  return (Number(fields[13]) + Number(fields[14])) / 100
}
