/** A target with a past, its rollback, and a publisher that acts by itself. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { FileSystem } from '../../src/durable/file-system.js'
import { readHistory } from '../../src/durable/look/read-history.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { publish } from '../../src/durable/publish/publish.js'
import { directoryPublication } from '../../src/durable/publish/replace.js'
import { rollBack, type RollbackOptions } from '../../src/durable/operator/rollback.js'
import type { Pin, PublicationOptions, ReplaceResult } from '../../src/durable/types.js'
import { contents, scratchWith } from './scratch.js'

export const pin = { reason: 'INC-9', until: 'newer' } as const
export const objectOf = (version: string, uid = 'u') => [
  { kind: 'Secret', namespace: 'demo', name: 'web', uid, resourceVersion: version, paths: ['tls.crt', 'sub/tls.key'] },
]

export function scene(t: Test) {
  const [root, target] = scratchWith(t, 'certs')
  const fs = new NodeFileSystem()
  const replace = async (
    text: string,
    options: PublicationOptions = {},
    by: FileSystem = fs,
  ): Promise<ReplaceResult> => {
    const files = { 'tls.crt': text, 'sub/tls.key': { content: text, mode: 0o440 } }
    const request = {
      target,
      files,
      mode: 0o750,
      history: { keep: 3, maxAge: null },
      objects: objectOf(text),
      ...options,
    }
    const [outcome] = await publish([directoryPublication(by, request)])
    if (outcome === undefined || 'error' in outcome) throw outcome?.error ?? new Error('no outcome')
    return outcome
  }
  const back = (options: Partial<RollbackOptions> = {}, by: FileSystem = fs) =>
    rollBack(by, target, { pin, ...options })
  const holds = () => contents(target)['tls.crt']
  const past = async () =>
    ((await readHistory(fs, target)) ?? []).map(({ sequence, why, state }) => `${sequence} ${why} ${state}`)
  const generation = (sequence: number): string =>
    join(root, readdirSync(root).find((name) => name.includes(`.${sequence}-`)) ?? '')
  return { root, target, fs, replace, back, holds, past, generation }
}

/** A publisher that acts by itself: ends a pin with newer objects. */
export const byItself = (version: string): PublicationOptions => ({
  objects: objectOf(version),
  supersedes: ({ from }: Pin) => from.every(({ resourceVersion }) => Number(version) > Number(resourceVersion)),
})
