import { InvalidArgumentError } from 'commander'

/* Parsers for the values of flags. Each throws commander's InvalidArgumentError, which ends in exit code 2. */

/** `0755`, `755`: octal, as chmod(1) reads it. */
export function parseMode(text: string): number {
  if (!/^[0-7]{3,4}$/.test(text)) {
    throw new InvalidArgumentError(
      'It must be an octal mode of three or four digits, as chmod takes it: 0755.',
    )
  }
  return Number.parseInt(text, 8)
}

/** `0:0`: numbers only, since a container's names are not the host's. */
export function parseOwner(text: string): { uid: number; gid: number } {
  const [uid, gid] = /^(\d{1,10}):(\d{1,10})$/.exec(text)?.slice(1).map(Number) ?? []
  // (uid_t)-1 tells chown(2) to leave the owner as it is, and is nobody's.
  if (uid === undefined || gid === undefined || uid >= 0xffffffff || gid >= 0xffffffff) {
    throw new InvalidArgumentError('It must be two numbers, user and group: 0:0. Names are not looked up.')
  }
  return { uid, gid }
}

const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const
/** The longest that a timer of Node can wait, in milliseconds. */
const longest = 2 ** 31 - 1

/** Go's durations, `1m30s`, `500ms`, `1.5h`, `0`: milliseconds. */
export function parseDuration(text: string): number {
  const invalid = new InvalidArgumentError('It must be a duration with units: 500ms, 60s, 1m30s.')
  if (text === '0') return 0
  if (!/^(\d+(\.\d+)?(ms|s|m|h))+$/.test(text)) throw invalid
  let sum = 0
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)) {
    sum += Number(amount) * units[unit as keyof typeof units]
  }
  if (sum > longest) throw new InvalidArgumentError('It must be less than 24 days.')
  return Math.round(sum)
}

/** `127.0.0.1:10808`, `[::1]:10808`, `:10808` (all addresses). */
export function parseListen(text: string): { host: string; port: number } {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]/\s]*)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (match === null || port > 65_535) {
    throw new InvalidArgumentError('It must be ADDRESS:PORT: 127.0.0.1:10808, [::1]:10808.')
  }
  return { host: match[1] ?? (match[2] === undefined || match[2] === '' ? '::' : match[2]), port }
}
