import { createHash } from 'node:crypto'

/*
 * Everything that holdfast keeps beside a target, in the target's own parent, begins with `.holdfast-ID`, ID being 16 hex
 * digits of SHA-256 over the target's basename. Kubelet and most programs that read whole directories leave names with
 * a leading dot alone.
 */

const randomPattern = /^[0-9a-f]{16}$/

/** No name that holdfast itself stages or records under ends so. */
const quarantineSuffix = '.foreign'

/** Every file that holdfast keeps beside a target; the group captures the target's key. */
export const ownPattern = /^\.holdfast-([0-9a-f]{16})[-.]/

/** A record of any target. */
export const recordPattern = /^\.holdfast-[0-9a-f]{16}\.[1-9][0-9]{0,14}$/

/** What any target stages, and the old content that stays there until its removal. */
export const stagingPattern = /^\.holdfast-[0-9a-f]{16}-[0-9a-f]{16}$/

/** An earlier content of any target: see history.ts. */
export const generationPattern = /^\.holdfast-[0-9a-f]{16}\.(?:0|[1-9][0-9]{0,14})-[0-9a-f]{16}$/

export interface TargetNames {
  /** flock, 0600, never unlinked, the same for every caller. */
  readonly lock: string
  readonly staging: (random: string) => string
  /** The random part of a staging name of this target; undefined for every other name. */
  readonly stagingOf: (name: string) => string | undefined
  /** The place of another program's files that stood under the staging name with this random part: no cleanup touches it. */
  readonly quarantine: (random: string) => string
  /** The random part of such a name of this target; undefined for every other name. */
  readonly quarantineOf: (name: string) => string | undefined
  readonly record: (sequence: number) => string
  /** The sequence of a record of this target; undefined for every other name. */
  readonly sequenceOf: (name: string) => number | undefined
  /** What keeps the content that was published with the record of this sequence. */
  readonly generation: (sequence: number, random: string) => string
  readonly isGeneration: (name: string) => boolean
}

/**
 * `family`: the name that gives the lock and staging names, if it is not the target's own. For revisions of a static pod: no later run
 * names the revision of a killed installation again, so only a name that all revisions share leads to its stage.
 */
export function namesFor(basename: string, family?: string): TargetNames {
  const names = namesOf(basename)
  if (family === undefined) return names
  const { record, sequenceOf, generation, isGeneration } = names
  return { ...namesOf(family), record, sequenceOf, generation, isGeneration }
}

function namesOf(basename: string): TargetNames {
  const id = createHash('sha256').update(basename).digest('hex').slice(0, 16)
  const prefix = `.holdfast-${id}`
  /** What stands behind the target's own digits and this mark; empty where the name begins otherwise. */
  const behind = (mark: string, name: string): string =>
    name.startsWith(prefix + mark) ? name.slice(prefix.length + 1) : ''
  const stagingOf = (name: string): string | undefined => randomPattern.exec(behind('-', name))?.[0]
  return {
    lock: `${prefix}.lock`,
    staging: (random) => `${prefix}-${random}`,
    stagingOf,
    quarantine: (random) => `${prefix}-${random}${quarantineSuffix}`,
    quarantineOf: (name) =>
      name.endsWith(quarantineSuffix) ? stagingOf(name.slice(0, -quarantineSuffix.length)) : undefined,
    record: (sequence) => `${prefix}.${sequence}`,
    sequenceOf(name) {
      const text = behind('.', name)
      return /^[1-9][0-9]{0,14}$/.test(text) ? Number(text) : undefined
    },
    generation: (sequence, random) => `${prefix}.${sequence}-${random}`,
    isGeneration: (name) => name.startsWith(`${prefix}.`) && generationPattern.test(name),
  }
}
