import type { DirectoryPublicationOptions } from './request.js'
import {
  hooksOf,
  isRepeated,
  type Judgement,
  letGoSince,
  describes,
  isInForce,
  isPinned,
  type RecordBody,
  type RetiredTree,
  type StagedInodes,
} from '../record/index.js'
import type { RecordedPlace, Tree } from '../path/index.js'
import type { Cause, History, Pin, RecordedObject } from '../types.js'

/** What a publication puts into its record. */
interface Publishing extends Pick<RecordBody, 'name' | 'kind' | 'boot'> {
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly found: Judgement | undefined
  readonly desired: Tree
  readonly options: Pick<
    DirectoryPublicationOptions,
    | 'objects'
    | 'hooks'
    | 'publisher'
    | 'pin'
    | 'supersedes'
    | 'attributes'
    | 'adopt'
    | 'movedFrom'
    | 'movedTo'
    | 'agent'
    | 'held'
  >
  readonly place: RecordedPlace
  readonly staging: StagedInodes | undefined
  readonly attributes: string | null
  readonly retired: readonly RetiredTree[]
  readonly history: History | undefined
}

/** The record of a publication. What a later version has put into the one before is carried on. */
export function newBody(publishing: Publishing): RecordBody {
  const { name, kind, boot, now, found, desired, options, place, staging, attributes, retired, history } = publishing
  const pin = pinAfter(publishing)
  const held = found?.record?.hold
  const hold = options.held === 'keep' && isInForce(held, now) ? held : undefined
  const why = history === undefined ? 'published' : options.pin ? 'rolledBack' : causeOf(found, desired)
  return {
    ...found?.newest?.unknown,
    name,
    kind,
    boot,
    before: found?.tree?.digest ?? null,
    after: desired.digest,
    owned: found?.recorded ?? false,
    publishedAt: now,
    objects: options.objects ?? [],
    hooks: hooksOf(found, desired, options, options.hooks),
    entries: desired.entries,
    publisher: options.publisher,
    ...marksAfter(publishing),
    attributes,
    keepsAttributes: options.attributes === 'keep' || undefined,
    staging,
    hold,
    retired: retired.length > 0 ? [...retired] : undefined,
    history,
    pin,
    ...movesAfter(publishing),
    why: why === 'published' ? undefined : why,
    place,
  }
}

/**
 * A second rollback keeps the first one's newest state in its pin. A publication that only repeats content of unknown durability keeps its
 * pin.
 */
function pinAfter({ now, found, desired, options }: Publishing): Pin | undefined {
  const record = found?.record
  const pin = record?.pin
  const before = isPinned(pin, now) ? pin : undefined
  if (options.pin) {
    const digest = before?.digest ?? record?.after ?? ''
    return { ...options.pin, since: now, from: [...goneFrom(record, now)], digest }
  }
  return options.supersedes && isRepeated(found, desired) ? before : undefined
}

/** A rollback of a target that was let go does not configure it: its marks stay those of the last keeper. */
function marksAfter({ now, found, options: { agent, pin } }: Publishing): Pick<RecordBody, 'agent' | 'letGo'> {
  const since = pin && found?.record && letGoSince(found.record)
  return {
    agent: agent === undefined ? undefined : { id: agent, publishedAt: now },
    letGo: since === undefined ? undefined : { since, publishedAt: now },
  }
}

/** A relocation continues from its recorded state; a request with another path begins a new one. */
function movesAfter({ now, found, options }: Publishing): Pick<RecordBody, 'relocation' | 'movedTo'> {
  const before = found?.record
  const { movedFrom, movedTo = before?.movedTo } = options
  const goesOn = movedFrom === undefined || (movedFrom !== null && before?.relocation?.from === movedFrom)
  const asked = movedFrom ? ({ from: movedFrom, as: 'removed', state: 'staged', since: now } as const) : undefined
  const relocation = goesOn ? before?.relocation : asked
  return { relocation, movedTo: movedTo ?? undefined }
}

/**
 * The objects that a rollback from this content goes back from. A content that `replace` has published was made from none: then those of
 * the newest one before it that was, since any object would be newer than none.
 */
export function goneFrom(
  record: Pick<RecordBody, 'objects' | 'history' | 'pin'> | undefined,
  now: number,
): readonly RecordedObject[] {
  const { objects = [], history, pin } = record ?? {}
  const before = history?.generations.map((generation) => generation.objects) ?? []
  return [isPinned(pin, now) ? pin.from : [], objects, ...before].find(({ length }) => length > 0) ?? []
}

/** Drift: the record's content is not there any more, so another program has changed it. Repeated content keeps its cause. */
function causeOf(found: Judgement | undefined, desired: Tree): Cause {
  if (isRepeated(found, desired)) return found.current.why ?? 'published'
  const { current, record } = found ?? {}
  const repairs = found?.recorded && current === undefined && record?.committed === true && !record.removing
  return repairs && describes(record, desired) ? 'driftRepaired' : 'published'
}
