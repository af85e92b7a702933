/*
 * Faults for which kubelet's validation refuses a Pod: kubelet takes the manifest for none, and ends the pod that ran from the file before. The
 * types are right already (type-faults.ts).
 */
import { asList, asMap, asText, type JsonMap } from '../json.js'
import { oldTolerations, jsonOf } from './annotation-checks.js'
import type { Place } from './place.js'
import { podRules } from './pod-rules.js'
import type { Kubelets, Rule } from './rule.js'
import { fieldOf, isKnownType, parts, type PodPart } from './visit.js'

export interface PodFault {
  /** As in `spec.containers[1].name`. */
  readonly field: string
  /** Quotes no value but names. */
  readonly problem: string
  /** `never`: kubelet takes the pod, and never runs it. `unknown`: a word that a later kubelet may know. */
  readonly kind: 'refused' | 'never' | 'unknown'
  /** Those that refuse the pod for it. */
  readonly kubelets: Kubelets
}

/** Every fault of the pod, in its own order. `node`: its name, where it is known. */
export function* podFaults(pod: JsonMap, node?: string): Generator<PodFault> {
  const about = { metadata: asMap(pod.metadata) ?? {}, spec: asMap(pod.spec) ?? {}, node }
  for (const part of typedParts(pod, about.metadata)) {
    if (isPassedOver(part) || !isKnownType(part.type)) continue
    const place = placeOf(part, about)
    for (const rule of podRules.get(part.type) ?? []) yield* faultsBy(rule, place)
  }
}

function* typedParts(pod: JsonMap, metadata: JsonMap): Generator<PodPart> {
  yield* parts(pod)
  const annotated = asText(asMap(metadata.annotations)?.[oldTolerations])
  if (annotated) yield* parts(jsonOf(annotated), 'Toleration[]', ['metadata', 'annotations', oldTolerations])
}

/** kubelet looks at no status of a manifest; ephemeral containers and templates of claims are refused as a whole. */
function isPassedOver({ path }: PodPart): boolean {
  return path[0] === 'status' || path[1] === 'ephemeralContainers' || path.includes('volumeClaimTemplate')
}

function placeOf({ value, path, holder }: PodPart, about: Pick<Place, 'metadata' | 'spec' | 'node'>): Place {
  const [, list = '', index] = path
  const container = asMap(asList(about.spec[list])[Number(index)])
  return {
    ...about,
    owner: asMap(value) ?? {},
    path,
    list: asList(holder),
    index: Number(path.at(-1)),
    container: (/ontainers$/.test(String(list)) && container) || {},
  }
}

function* faultsBy({ fields, check, problem, kubelets, never }: Rule, place: Place): Generator<PodFault> {
  for (const field of fields)
    for (const [steps, value] of valuesAt(field, place.owner)) {
      const fault = { field: fieldOf([...place.path, ...steps]), problem, kubelets }
      if (typeof check === 'function') {
        if (!check(value ?? undefined, place, String(steps.at(-1) ?? '')))
          yield { ...fault, kind: never ? 'never' : 'refused' }
      } else if (!isAmong(value, check)) yield { ...fault, kind: isUnknown(value) ? 'unknown' : 'refused' }
    }
}

type Found = readonly [steps: readonly (string | number)[], value: unknown]

function valuesAt(field: string, owner: JsonMap): readonly Found[] {
  if (field === '.') return [[[], owner]]
  const [, name = '', of] = /^(\w+)(\[\]|\{\}|\{key\})?$/.exec(field) ?? []
  const value = owner[name]
  if (of === undefined) return [[[name], value]]
  if (of === '[]') return asList(value).map((item, index) => [[name, index], item])
  return Object.entries(asMap(value) ?? {}).map(([key, item]) => [[name, key], item])
}

function isAmong(value: unknown, { words, none }: Exclude<Rule['check'], (...all: never) => unknown>): boolean {
  const text = asText(value)
  if (text === undefined || text === '') return none === 'defaulted' || (none === 'given' && text === undefined)
  return words.includes(text)
}

const letters = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '')

const knownWords = new Set(
  [...podRules.values()].flat().flatMap(({ check }) => (typeof check === 'function' ? [] : check.words.map(letters))),
)

/** Neither empty, nor a word of any enumeration, however it is written. */
function isUnknown(value: unknown): boolean {
  const text = asText(value) ?? ''
  return /^[A-Za-z][A-Za-z0-9+-]*$/.test(text) && !knownWords.has(letters(text))
}
