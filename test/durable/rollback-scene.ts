/** A target that is rolled back, and the words in which that is refused. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { DurableWriteError } from '../../src/durable/errors.js'
import type { FileSystem } from '../../src/durable/file-system.js'
import { rollBack, type RollbackOptions } from '../../src/durable/operator/rollback.js'
import type { PublicationOptions } from '../../src/durable/types.js'
import { forever, objectOf, scene as history } from './history-scene.js'
import { failure, intercepted } from './intercepted.js'

export const pin = { reason: '', until: 'released' } as const
const stopped = new Error('the caller has seen enough')

/** The sequence that comes back, or the refusal. A defect says no more than that it is one. */
export const answer = (back: Promise<{ sequence: number }>): Promise<number | string> =>
  back.then(
    ({ sequence }) => sequence,
    (error: unknown) => {
      if (error === stopped) return 'may come back'
      if (!(error instanceof DurableWriteError) || error.code === 'ENOTRECOVERABLE') return 'a defect'
      return `${error.code}: ${error.problem}`
    },
  )

export function scene(t: Test, form?: PublicationOptions['publish']) {
  const one = history(t, form)
  const { target, fs } = one
  const replace = (text: string, options: PublicationOptions = {}, by: FileSystem = fs) =>
    one.replaceBy(by, text, { history: forever(3), objects: [objectOf(text)], ...options })
  const back = (options: Partial<RollbackOptions> = {}, by: FileSystem = fs) =>
    answer(rollBack(by, target, { pin, ...options }))
  /** Stops a rollback once it is known to be possible. */
  const wouldBack = (options: Partial<RollbackOptions> = {}) => {
    const confirmFiles = () => {
      throw stopped
    }
    return back({ ...options, confirmFiles })
  }
  /** What becomes visible by it may not survive a power cut. */
  const unproven = (): FileSystem => {
    let visible = false
    return intercepted((call) => {
      visible ||= call === 'rename'
      if (visible && call === 'sync') throw failure('EIO', call)
    }, fs).fs
  }
  const edit = () => writeFileSync(join(target, 'tls.crt'), 'edited')
  return { ...one, replace, back, wouldBack, unproven, edit }
}
