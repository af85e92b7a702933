import { Option } from 'commander'
import { logLevels, type LogLevel } from './logger.js'
import { parseDirectoryMode, parseDuration, parseFileMode, parseOwner } from './option-values.js'

/* Flags that several commands share, so that they mean the same and are explained the same everywhere. */

export interface OutputOptions {
  readonly output: 'text' | 'json'
  readonly logLevel: LogLevel
}

export const outputOption = () =>
  new Option('-o, --output <format>', 'print one JSON document instead of text')
    .choices(['text', 'json'])
    .default('text')
    .env('HOLDFAST_OUTPUT')

export const logLevelOption = () =>
  new Option('--log-level <level>', 'least severe level that is logged, to standard error')
    .choices(logLevels)
    .default('info')
    .env('HOLDFAST_LOG_LEVEL')

export const configOption = () => new Option('-c, --config <file>', 'the configuration file').env('HOLDFAST_CONFIG')

/** Where objects come from, as kubectl's users know it. */
export interface SourceOptions {
  readonly kubeconfig?: string
  readonly context?: string
  readonly namespace?: string
  readonly nodeName?: string
}

export const sourceOptions = () => [
  new Option('--kubeconfig <file>', 'kubeconfig to use instead of the configured one').env('HOLDFAST_KUBECONFIG'),
  new Option('--context <name>', "the kubeconfig's context to use").env('HOLDFAST_CONTEXT'),
  new Option('-n, --namespace <name>', 'namespace of objects that are named without one').env('HOLDFAST_NAMESPACE'),
  new Option('--node-name <name>', 'this node, as the cluster calls it (also: NODE_NAME)').env('HOLDFAST_NODE_NAME'),
]

export const ownerOption = () =>
  new Option('--owner <uid:gid>', 'owner, as numbers (default: who runs this)').argParser(parseOwner)

export const directoryModeOption = (description: string, fallback: string) =>
  new Option('--mode <mode>', description).argParser(parseDirectoryMode).default(parseDirectoryMode(fallback), fallback)

export const fileModeOption = (flag: '--mode' | '--file-mode', description: string, fallback: string) =>
  new Option(`${flag} <mode>`, description).argParser(parseFileMode).default(parseFileMode(fallback), fallback)

export const requireProvenOption = () =>
  new Option('--require-proven', 'refuse file systems on which durability is not proven (not ext4, xfs, btrfs)')

export const lockTimeoutOption = () =>
  new Option('--lock-timeout <duration>', 'wait so long for another holder of the lock')
    .argParser(parseDuration)
    .default(0, '0: fail at once, exit 75')
