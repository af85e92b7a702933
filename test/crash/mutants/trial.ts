import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Item } from './battery.js'

/** A mutant is killed by a test's own words alone; one that hangs, or breaks what runs it, is not. */
export type Verdict = 'killed' | 'survived' | 'hangs' | 'breaks'

/** What V8 says of code that was cut in the wrong place: no test has looked at anything then. */
const broken =
  /Cannot (read|set) properties of|is not (a function|iterable|defined|a constructor)|Cannot destructure|Cannot convert|Cannot access|Cannot mix BigInt|before initialization|Assignment to constant|Maximum call stack|Unexpected type|must be of type|ERR_INVALID|ERR_OUT_OF_RANGE/

/** A failure in TAP: the file that runs, where several do, and what is said, the lines of the test's source left out. */
interface Failure {
  readonly file: string | undefined
  readonly text: string
}

function failures(tap: string): Failure[] {
  const found: Failure[] = []
  const pattern = /^( *)not ok (?!.*# TODO)(.*)\n((?:\1 {2}.*\n|\s*\n)*)|^# file: (.*)$/gm
  let file: string | undefined
  for (const [, indent = '', title, diagnostics = '', next] of tap.matchAll(pattern)) {
    file = next ?? file
    // A test that fails since one inside it does: that one has been asked.
    if (title === undefined || title.includes('# time=')) continue
    const source = new RegExp(`^${indent}  source: .*\\n(?:${indent}   .*\\n|\\s*\\n)*`, 'm')
    found.push({ file, text: `${title}\n${diagnostics.replace(source, '')}` })
  }
  return found
}

/** Whether it is a test that says so: an uncaught mistake of the language is none, and neither is a test that never ends. */
function judge({ text }: Failure): Verdict {
  if (/^(\d+ - )?(test unfinished|timeout)/.test(text)) return 'hangs'
  if (broken.test(text)) return 'breaks'
  if (text.includes('tapCaught:') && /^\s*type: (Type|Reference|Range|Syntax)Error$/m.test(text)) return 'breaks'
  return 'killed'
}

/** What the items have answered: of one that is killed, which one has. */
export function answerOf(items: readonly Item[], code: number | null, output: string, errors: string): Answer {
  const [first] = items
  const name = first?.name ?? ''
  if (name.startsWith('model: ') && code !== null && code !== 0) {
    return { verdict: output.includes('"states"') && !broken.test(errors) ? 'killed' : 'breaks', by: name }
  }
  const found = failures(output)
  const kill = found.find((failure) => judge(failure) === 'killed')
  if (kill) return { verdict: 'killed', by: kill.file ?? name }
  if (code === null) return { verdict: 'hangs', by: name }
  if (code === 0) return { verdict: 'survived', by: '' }
  const [failure] = found
  return { verdict: failure ? judge(failure) : 'breaks', by: failure?.file ?? name }
}

/** Where a copy may write; the rest of the machine is read-only to it, where this user may arrange that. */
export interface Room {
  readonly directory: string
  readonly temporary: string
  readonly isolated: boolean
}

const isolation = 'mount --bind "$0" "$0" && mount -o remount,bind,ro / && exec "$@"'

export interface Answer {
  readonly verdict: Verdict
  /** The item that has answered; none where all of them pass. */
  readonly by: string
}

/** Runs these on the copy, to the first failure; where that is no answer, to the end. `patience`: seconds. */
export async function tryItems(items: readonly Item[], room: Room, patience: number): Promise<Answer> {
  const answer = await run(items, room, patience, true)
  return answer.verdict === 'breaks' ? run(items, room, patience, false) : answer
}

async function run(items: readonly Item[], room: Room, patience: number, bail: boolean): Promise<Answer> {
  const { directory, temporary, isolated } = room
  const [only] = items
  const [program = '', ...args] =
    items.length === 1 && only ? only.command : ['test/runner/several.js', ...items.map(({ name }) => name)]
  const node = ['nice', '-n', '2', process.execPath, join(directory, program), ...args]
  const [command = '', ...rest] = isolated
    ? ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', isolation, temporary, ...node]
    : node
  const child = spawn(command, rest, {
    cwd: directory,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOLDFAST_DIST: directory,
      HOLDFAST_SEED: '1',
      TMPDIR: temporary,
      TAP_TIMEOUT: `${Math.ceil(patience)}`,
      ...(bail && { TAP_BAIL: '1' }),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let output = ''
  let errors = ''
  let hangs = false
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const kill = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // All of them have ended.
    }
  }
  const timer = setTimeout(() => {
    hangs = true
    kill()
  }, patience * 1000)
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    // What it has left running holds its pipes open.
    child.once('exit', kill)
    child.once('close', (status) => resolve(hangs ? null : (status ?? -1)))
  })
  clearTimeout(timer)
  return answerOf(items, code, output, errors)
}

/** CPU-seconds of all processes that this one has started and that have ended. */
export function secondsOfChildren(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  // cutime and cstime, fields 16 and 17 of proc_pid_stat(5); the first two are cut off. In ticks, a hundred a second on Linux.
  return (Number(fields[13]) + Number(fields[14])) / 100
}
