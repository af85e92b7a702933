import { spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Mutation, SuiteName } from './mutation.js'
import { mutations } from './mutations.js'
import { makeProgram } from './program.js'

/** A suite, run against a copy of the program: what it found wrong, or undefined. */
export type Suite = (directory: string) => Promise<string | undefined>

export interface Row {
  readonly mutation: Mutation
  readonly caught: ReadonlyMap<SuiteName, string | undefined>
}

/** Longest time for one suite with one mutation, in milliseconds: one that hangs has been caught. */
const patience = 900_000

/** The model explorer on the copy's own core. */
export function modelSuite(args: readonly string[]): Suite {
  return async (directory) => {
    const { code, output, errors } = await runProgram(directory, [
      '--effort',
      'quick',
      '--impatient',
      ...args,
    ])
    if (code === 0) return undefined
    if (code !== null && !output.includes('"states"'))
      throw new Error(`the mutated program does not even run: ${errors}`)
    return errors.split('\n')[0]?.slice(0, 160) ?? ''
  }
}

/** The model explorer as a program of its own, which is what a mutation needs. */
export async function runProgram(
  directory: string,
  args: readonly string[],
): Promise<{ code: number | null; output: string; errors: string }> {
  const program = join(directory, 'test/crash/model/main.js')
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  let errors = ''
  let hangs = false
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const timer = setTimeout(() => (hangs = child.kill('SIGKILL')), patience)
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (status, signal) => {
      clearTimeout(timer)
      if (hangs) errors = `hangs; ${errors}`
      // Nobody may take a kill from outside for something that the suite has caught.
      if (signal !== null && !hangs) reject(new Error(`the model suite was ended by ${signal}, from outside`))
      else resolve(status)
    })
  })
  return { code, output, errors }
}

/** Every mutation against every suite, `width` at a time. */
export async function runMutations(
  suites: ReadonlyMap<SuiteName, Suite>,
  width: number,
  told: (row: Row) => void,
  chosen: readonly Mutation[] = mutations,
): Promise<Row[]> {
  const rows: Row[] = []
  const queue = chosen.values()
  const worker = async (): Promise<void> => {
    for (const mutation of queue) {
      const program = makeProgram(mutation.patches)
      try {
        const caught = new Map<SuiteName, string | undefined>()
        for (const [name, suite] of suites) caught.set(name, await suite(program.directory))
        const row = { mutation, caught }
        rows.push(row)
        told(row)
      } finally {
        program.remove()
      }
    }
  }
  await Promise.all(Array.from({ length: width }, worker))
  return rows.sort((a, b) => chosen.indexOf(a.mutation) - chosen.indexOf(b.mutation))
}

const columns: readonly SuiteName[] = ['model', 'syscalls', 'power']

/** The table for people: `caught`, `—` for not caught, nothing where a suite was not run, `!` where it had to catch it. */
export function table(rows: readonly Row[]): string {
  const cell = ({ mutation, caught }: Row, suite: SuiteName): string => {
    if (!caught.has(suite)) return ''
    if (caught.get(suite) !== undefined) return 'caught'
    return mutation.expected.includes(suite) ? '— !' : '—'
  }
  const head = ['mutation', ...columns]
  const lines = rows.map((row) => [row.mutation.name, ...columns.map((suite) => cell(row, suite))])
  const widths = head.map((_, column) =>
    Math.max(...[head, ...lines].map((line) => line[column]?.length ?? 0)),
  )
  const shown = (line: readonly string[]): string =>
    line
      .map((text, column) => text.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
  return [shown(head), ...lines.map(shown)].join('\n')
}

/** Mutations that a suite which was run should have caught. */
export function survivors(rows: readonly Row[]): Row[] {
  return rows.filter(({ mutation, caught }) =>
    mutation.expected.some((suite) => caught.has(suite) && caught.get(suite) === undefined),
  )
}
