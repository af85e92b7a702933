import { parseArgs } from 'node:util'
import { suiteNames, type SuiteName } from './suites.js'

export const usage = `npm test -- [OPTIONS] [FILE, DIRECTORY or part of a path...]

  --suite NAME     ${suiteNames.join(', ')} (default: unit; files that are named are run whatever suite they belong to)
  --jobs N         processes at a time (default: the suite's own)
  --alone          each file in a process of its own
  --tap FILE       writes all TAP to FILE
  --verbose        names each test as it ends, and prints what tests print
  --costs N        the N most expensive files at the end, with their CPU-seconds
`

export interface Arguments {
  readonly suite: SuiteName
  readonly jobs: number | undefined
  readonly alone: boolean
  readonly tap: string | undefined
  readonly verbose: boolean
  readonly costs: number
  readonly paths: readonly string[]
}

/** @throws Error where an argument is unknown or no number. */
export function readArguments(argv: readonly string[]): Arguments {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      suite: { type: 'string', default: 'unit' },
      jobs: { type: 'string' },
      alone: { type: 'boolean', default: false },
      tap: { type: 'string' },
      verbose: { type: 'boolean', default: false },
      costs: { type: 'string', default: '0' },
    },
  })
  const suite = suiteNames.find((name) => name === values.suite)
  if (suite === undefined) throw new Error(`--suite ${values.suite}: is none of ${suiteNames.join(', ')}`)
  return {
    suite,
    jobs: values.jobs === undefined ? undefined : wholeNumber('--jobs', values.jobs, 1),
    alone: values.alone,
    tap: values.tap,
    verbose: values.verbose,
    costs: wholeNumber('--costs', values.costs, 0),
    paths: positionals,
  }
}

function wholeNumber(flag: string, text: string, least: number): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < least)
    throw new Error(`${flag} ${text}: must be a whole number from ${least}`)
  return value
}
