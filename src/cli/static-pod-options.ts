import { InvalidArgumentError, Option } from 'commander'
import { UsageError } from './exit-codes.js'
import type { LogLevel } from './logger.js'
import { isObjectName, parseRevision } from '../static-pods/names.js'

/* Flags of install, prune and monitor, as OpenShift's installer, prune and startup-monitor commands take them. */

/** Adds the names of one flag: it may be repeated, and each may hold several, with commas between. */
export function collectNames(text: string, before: readonly string[] = []): string[] {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  const wrong = names.find((name) => !isObjectName(name))
  if (wrong !== undefined) {
    throw new InvalidArgumentError(`${JSON.stringify(wrong)} is not a name that Kubernetes allows.`)
  }
  return [...before, ...names]
}

export function collectRevisions(text: string, before: readonly number[] = []): number[] {
  const parts = text.split(',').filter((part) => part.trim() !== '')
  return [...before, ...parts.map((part) => parseRevisionFlag(part.trim()))]
}

export function parseRevisionFlag(text: string): number {
  const revision = parseRevision(text)
  if (revision === undefined) throw new InvalidArgumentError('It must be a whole number from 0 to 2147483647.')
  return revision
}

export function parseName(text: string): string {
  if (!isObjectName(text)) throw new InvalidArgumentError('It must be a name that Kubernetes allows.')
  return text
}

export const nodeNameOption = (description: string) =>
  new Option('--node-name <name>', description)
    // What a template leaves empty is not set.
    .argParser((text: string) => (text === '' ? text : parseName(text)))
    .env('HOLDFAST_NODE_NAME')

/** The flag's, or NODE_NAME's, which an operator's template sets; empty counts as not set. Throws UsageError. */
export function nodeNameOf({ nodeName }: { readonly nodeName?: string }): string | undefined {
  if (nodeName) return nodeName
  const name = process.env.NODE_NAME || undefined
  if (name !== undefined && !isObjectName(name))
    throw new UsageError(`NODE_NAME is ${JSON.stringify(name)}: it must be a name that Kubernetes allows`)
  return name
}

export function parseCount(text: string): number {
  if (!/^[0-9]{1,6}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.')
  return Number(text)
}

/** klog's `-v=4`: from 4 on, everything is logged. */
export const verbosityOption = () =>
  new Option(
    '-v, --v <number>',
    'verbosity, as klog counts it: 4 and above log everything, as --log-level debug',
  ).argParser((text) => parseCount(text.replace(/^=/, '')))

export function logLevelOf(options: { readonly v?: number; readonly logLevel: LogLevel }): LogLevel {
  return options.v !== undefined && options.v >= 4 && options.logLevel === 'info' ? 'debug' : options.logLevel
}

/** `hint`: what else may be meant. @throws UsageError that names every flag that is missing */
export function requireFlags(flags: Readonly<Record<string, unknown>>, hint = ''): void {
  const missing = Object.keys(flags).filter((flag) => {
    const value = flags[flag]
    return value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
  })
  if (missing.length > 0)
    throw new UsageError(`${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} missing${hint}`)
}
