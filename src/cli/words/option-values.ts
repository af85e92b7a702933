import { InvalidArgumentError } from 'commander'
import { parseDuration as millisecondsOf } from '../../config/duration.js'
import { formatMode, isFileMode, modeLimits, parseOctal } from '../../config/mode.js'
import { isObjectName } from '../../kubernetes-names.js'
import { parseRevision } from '../../static-pods/names.js'
import type { OperatorResource } from '../../static-pods/monitor/operator-status.js'

/* Parsers for the values of flags. Each throws commander's InvalidArgumentError, which ends in exit code 2. */

/** `0600`, `600`: octal, as chmod(1) reads it; permission bits only. */
export function parseFileMode(text: string): number {
  return parseMode(text, modeLimits.file)
}

/** `0755`, `2750`: octal, as chmod(1) reads it; set-user-ID means nothing here. */
export function parseDirectoryMode(text: string): number {
  const mode = parseMode(text, modeLimits.directory)
  if (!isFileMode(mode)) return mode
  throw new InvalidArgumentError('A directory needs x where it has r, as in 0755; the mode of files is --file-mode.')
}

function parseMode(text: string, allowed: number): number {
  const mode = parseOctal(text)
  if (mode === undefined) {
    throw new InvalidArgumentError('It must be an octal mode of three or four digits, as chmod takes it: 0755.')
  }
  if ((mode & ~allowed) !== 0) {
    throw new InvalidArgumentError(`It has bits that are not allowed here; use at most ${formatMode(allowed)}.`)
  }
  return mode
}

/** `0:0`: numbers only, since a container's names are not the host's. */
export function parseOwner(text: string): { uid: number; gid: number } {
  const [uid, gid] = /^(\d{1,10}):(\d{1,10})$/.exec(text)?.slice(1).map(Number) ?? []
  // chown(2) takes (uid_t)-1 for "leave the owner as it is": no user has this number.
  if (uid === undefined || gid === undefined || uid >= 0xffffffff || gid >= 0xffffffff) {
    throw new InvalidArgumentError('It must be two numbers, user and group, as in 0:0; holdfast looks up no names.')
  }
  return { uid, gid }
}

/** The number of a content, in a target's history. */
export function parseSequence(text: string): number {
  if (/^(?:0|[1-9][0-9]{0,14})$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a number that "holdfast history PATH" lists.')
}

/** `sha256:` and 64 hexadecimal digits, in lower case. */
export function parseDigest(text: string): string {
  if (!/^sha256:[0-9a-f]{64}$/i.test(text))
    throw new InvalidArgumentError('It must be sha256: and 64 hexadecimal digits, as sha256sum prints them.')
  return text.toLowerCase()
}

/** The longest that a timer of Node can wait, in milliseconds. */
const longest = 2 ** 31 - 1

const day = 24 * 60 * 60 * 1000

/** Go's durations, `1m30s`, `500ms`, `1.5h`, `0`, after days: `1d`, `2d12h`. In milliseconds. */
export function parseDurationFlag(text: string): number {
  const [, days, rest = ''] = /^(?:(\d{1,6}(?:\.\d{1,6})?)d)?(.*)$/s.exec(text) ?? []
  const time = days !== undefined && rest === '' ? 0 : millisecondsOf(rest)
  if (time === undefined) throw new InvalidArgumentError('It must be a duration with units: 500ms, 60s, 1m30s, 1d.')
  const duration = Number(days ?? 0) * day + time
  if (duration > longest) throw new InvalidArgumentError('It must be less than 24 days.')
  // 1ns is not 0, which means something else for some flags.
  return Math.max(Math.round(duration), duration > 0 ? 1 : 0)
}

/** `127.0.0.1:10808`, `[::1]:10808`, `:10808` (all addresses). */
export function parseListen(text: string): { host: string; port: number } {
  const address = hostAndPort(text)
  if (address === undefined) throw new InvalidArgumentError('It must be ADDRESS:PORT: 127.0.0.1:10808, [::1]:10808.')
  return { ...address, host: address.host || '::' }
}

/** `witness.example:10809`, `[fd00::7]:10809`. */
export function parseHostPort(text: string): { host: string; port: number } {
  const address = hostAndPort(text)
  if (address === undefined || address.host === '' || address.port === 0)
    throw new InvalidArgumentError('It must be HOST:PORT: witness.example:10809, [fd00::7]:10809.')
  return address
}

function hostAndPort(text: string): { host: string; port: number } | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]/\s]*)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (match === null || port > 65_535) return undefined
  return { host: match[1] ?? match[2] ?? '', port }
}

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
  const parts = text.split(',').map((part) => part.trim())
  // As library-go's pruner: an empty variable in a template must not make every revision removable.
  if (parts.includes(''))
    throw new InvalidArgumentError('One of the numbers is empty; to protect none, leave the flag out.')
  return [...before, ...parts.map(parseRevisionFlag)]
}

/** As library-go's pruner, which takes 0 for a flag that was forgotten. */
export function parseEligibleRevision(text: string): number {
  const revision = parseRevisionFlag(text)
  if (revision === 0) throw new InvalidArgumentError('It must be 1 or more.')
  return revision
}

export function parseRevisionFlag(text: string): number {
  const revision = parseRevision(text)
  if (/^0\d+$/.test(text)) {
    throw new InvalidArgumentError('It must be a whole number without a leading zero: revisions are directory names.')
  }
  if (revision === undefined) throw new InvalidArgumentError('It must be a whole number from 0 to 2147483647.')
  return revision
}

export function parseName(text: string): string {
  if (!isObjectName(text)) throw new InvalidArgumentError('It must be a name that Kubernetes allows.')
  return text
}

/** `kubeapiservers.operator.openshift.io/cluster`. */
export function parseOperator(text: string): OperatorResource {
  const [, resource, group, name] = /^([a-z0-9]+)\.([a-z0-9.-]+)\/([a-z0-9.-]+)$/.exec(text) ?? []
  if (!resource || !group || !name) {
    throw new InvalidArgumentError('It must be RESOURCE.GROUP/NAME: kubeapiservers.operator.openshift.io/cluster.')
  }
  return { resource, group, name }
}
