/** A target with a past, its rollback, and a publisher that acts by itself. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { FileSystem } from '../../src/durable/file-system.js'
import { readHistory } from '../../src/durable/look/read-history.js'
import { rollBack, type RollbackOptions } from '../../src/durable/operator/rollback.js'
import type { Pin, PublicationOptions, ReplaceResult } from '../../src/durable/types.js'
import { forever, scene as history } from './history-scene.js'
import { contents } from './scratch.js'

export const pin = { reason: 'INC-9', until: 'newer' } as const
export const objectOf = (version: string, uid = 'u') => [
  { kind: 'Secret', namespace: 'demo', name: 'web', uid, resourceVersion: version, paths: ['tls.crt', 'sub/tls.key'] },
]

export function scene(t: Test) {
  const one = history(t)
  const { root, target, fs } = one
  const replace = (text: string, options: PublicationOptions = {}, by: FileSystem = fs): Promise<ReplaceResult> =>
    one.replaceBy(by, text, { history: forever(3), objects: objectOf(text), ...options })
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
