import { hooksOf, isRepeated, type Judgement } from './judge.js'
import type { Standing } from './place.js'
import { demanding, type RecordBody, type RetiredTree, type StagedInodes } from './record.js'
import type { Tree } from './tree.js'
import type { Cause, History, PublicationOptions } from './types.js'

/** What a publication puts into its record. */
interface Publishing extends Pick<RecordBody, 'name' | 'kind' | 'boot'> {
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly found: Judgement | undefined
  readonly desired: Tree
  readonly options: Pick<PublicationOptions, 'objects' | 'hooks' | 'publisher'>
  readonly place: Standing
  readonly staging: StagedInodes | undefined
  readonly attributes: string | null
  readonly retired: readonly RetiredTree[]
  readonly history: History | undefined
}

/** The record of a publication. What a later version has put into the one before is carried on. */
export function newBody(publishing: Publishing): RecordBody {
  const { name, kind, boot, now, found, desired, options, place, staging, attributes, retired, history } = publishing
  const why = history === undefined ? 'published' : causeOf(found, desired)
  return {
    ...found?.newest?.unknown,
    version: 1,
    name,
    kind,
    boot,
    before: found?.tree?.digest ?? null,
    after: desired.digest,
    owned: found?.recorded ?? false,
    publishedAt: now,
    objects: options.objects ?? [],
    hooks: hooksOf(found, desired, options.hooks),
    entries: desired.entries,
    ...(options.publisher && { publisher: options.publisher }),
    attributes,
    ...(staging && { staging }),
    ...demanding({ retired, history }),
    ...(why !== 'published' && { why }),
    place,
  }
}

/** The content that the newest record tells of was there, and is not any more: somebody has changed it. What is only repeated is what it was. */
function causeOf(found: Judgement | undefined, desired: Tree): Cause {
  if (isRepeated(found, desired)) return found?.current?.why ?? 'published'
  const repairs = found?.current === undefined && found?.newest?.committed === true
  return repairs && found.newest.after === desired.digest ? 'driftRepaired' : 'published'
}
