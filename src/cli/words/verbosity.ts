import type { Command } from 'commander'
import { Option, parseCount } from './option.js'

/** klog's: from this number on, everything is logged. */
const everything = 4

/** `-q` and klog's `-v=4`, beside --log-level. */
export const verbosityOptions = () => [
  new Option('-q, --quiet', 'print no text and log errors alone: the exit code tells; -o json prints still'),
  new Option(
    '-v, --v <number>',
    'verbosity as in klog: 4 and above, or none, log all, as --log-level debug does',
  ).argParser(parseCount),
]

/** Has the flags of a command say the same: level and output follow from `-q` and `-v`. */
export function settleVerbosity(command: Command): void {
  const { quiet, v, logLevel, output } = command.opts<{
    quiet?: true
    v?: number
    logLevel?: string
    output?: string
  }>()
  if (v !== undefined && v >= everything && logLevel === 'info') command.setOptionValue('logLevel', 'debug')
  if (quiet !== true) return
  if (logLevel !== 'silent') command.setOptionValue('logLevel', 'error')
  if (output === 'text' || output === 'wide') command.setOptionValue('output', 'none')
}
