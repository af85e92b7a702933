/**
 * What the program under test said, and when: records of our own in the disk's log, appended by the process that heard it
 * before it does anything else. Folded in their order they say which generations a target may hold after a power cut.
 */
import { closeSync, openSync } from 'node:fs'
import { appendRecord, kind } from '../../disk/write-log.js'
import type { Target } from './targets.js'

export type Mark =
  /** Cuts count from here on; the targets hold nothing yet. */
  | { event: 'targets'; targets: Target[] }
  /** Publishing this generation begins. */
  | { event: 'begun'; paths: string[]; generation: number }
  /** The program said that it is durable. */
  | { event: 'acknowledged'; paths: string[]; generation: number }
  /** The program said that it failed. */
  | { event: 'failed'; paths: string[]; generation: number; published: boolean; message: string }

export function appendMark(log: string, mark: Mark | string): void {
  const descriptor = openSync(log, 'a')
  try {
    appendRecord(descriptor, { kind: kind.mark, number: 0n, data: Buffer.from(JSON.stringify(mark)) })
  } finally {
    closeSync(descriptor)
  }
}

export interface Expected {
  readonly target: Target
  /** Generations of which the target must hold exactly one. */
  readonly allowed: readonly number[]
  /** The newest requested generation. */
  readonly newest: number
}

/** The state of knowledge after each mark. */
export class Expectations {
  readonly #targets = new Map<string, Expected>()
  /** The allowed contents at the start of the current publication. */
  readonly #before = new Map<string, readonly number[]>()

  get all(): readonly Expected[] {
    return [...this.#targets.values()]
  }

  /** Whether the program has just said something that a power cut from now on may prove wrong. */
  apply(mark: Mark): boolean {
    if (mark.event === 'targets') {
      for (const target of mark.targets) {
        this.#targets.set(target.path, { target, allowed: [0], newest: 0 })
      }
      return false
    }
    for (const path of mark.paths) {
      const expected = this.#targets.get(path)
      if (!expected) throw new Error(`a mark of ${path}, which is no target`)
      this.#targets.set(path, { ...expected, ...this.#after(path, expected, mark) })
    }
    return mark.event !== 'begun'
  }

  #after(
    path: string,
    { allowed, newest }: Expected,
    mark: Exclude<Mark, { event: 'targets' }>,
  ): Pick<Expected, 'allowed' | 'newest'> {
    const { generation } = mark
    switch (mark.event) {
      case 'begun':
        this.#before.set(path, allowed)
        return {
          allowed: [...allowed.filter((other) => other !== generation), generation],
          newest: Math.max(newest, generation),
        }
      case 'acknowledged':
        return { allowed: [generation], newest }
      case 'failed':
        // Not published: the target is unchanged, with any earlier doubt.
        return { allowed: mark.published ? allowed : (this.#before.get(path) ?? allowed), newest }
    }
  }
}
