/** Runs a hook, and returns its log and its error: neither may hold a secret. */
import t from 'tap'
import type { Hook } from '../../src/config/hooks.js'
import { runHook } from '../../src/directories/hooks.js'
import { type Log } from '../../src/log.js'

export const canary = 'canary-9d2c'

/** A time that no hook takes by being slow; a test that is about time gives its own. */
export const policy = { timeout: 60_000, retries: 0, jitter: 0, key: 'x', place: 'directories[0].afterPublish[0]' }

/** Everything that a hook says, in its log and in its error. */
export async function outcome(
  hook: Hook,
  { signal = new AbortController().signal, pause = 1 }: { signal?: AbortSignal; pause?: number } = {},
): Promise<{ message: string | undefined; log: string[]; error: unknown }> {
  const log: string[] = []
  const note = (fields: object, message: string) => void log.push(`${JSON.stringify(fields)} ${message}`)
  const all: Log = { debug: note, info: note, warn: note, error: note }
  const error: unknown = await runHook(hook, { signal, log: all, pause }).catch((caught: unknown) => caught)
  t.notMatch(log.join('\n'), canary, 'nothing secret is logged')
  if (error === undefined) return { message: undefined, log, error }
  if (!(error instanceof Error)) throw new TypeError('no Error')
  const everything = JSON.stringify([error.message, error.stack, error.cause, Object.entries(error)])
  t.notOk(everything.includes(canary), `nothing secret in the error: ${everything}`)
  return { message: error.message, log, error }
}

export const messageOf = async (hook: Hook) => (await outcome(hook)).message
