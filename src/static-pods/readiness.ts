import type { Manifest } from './manifest.js'

/**
 * What one probe answers. `no-answer`: nobody is there who could say; where no other probe is ready, the pod is not. `unknown`: the
 * question cannot be asked, or was refused, which says nothing of the pod.
 */
export type ProbeResult =
  { readonly state: 'ready' } | { readonly state: 'not-ready' | 'no-answer' | 'unknown'; readonly message: string }

/** What all probes answer together. */
export type Readiness =
  /** `identified`: by a probe that tells one version of the pod from another. */
  | { readonly state: 'ready'; readonly identified: boolean }
  | { readonly state: 'not-ready' | 'unknown'; readonly message: string }

export interface Probe {
  /** For people: `https://localhost:6443/readyz`. */
  readonly name: string
  /** It tells one version of the pod from another. What merely asks an address may hear the old pod. */
  readonly identifiesPod?: true
  /** Never throws. */
  ask(manifest: Manifest, signal: AbortSignal): Promise<ProbeResult>
}

/** Successes in a row that count as ready: one may come from the old pod, or from a new one about to fail. */
export const successes = 3

/** Milliseconds between two looks; library-go's. */
export const lookInterval = 1_000

/**
 * Ready: at least one probe says so, and none denies it. Unknown: no probe could ask. A revision must not be taken back because the
 * monitor itself lacks a right.
 */
export async function askAll(probes: readonly Probe[], manifest: Manifest, signal: AbortSignal): Promise<Readiness> {
  const results = await Promise.all(probes.map(async (probe) => ({ probe, result: await probe.ask(manifest, signal) })))
  const states = new Set(results.map(({ result }) => result.state))
  if (states.has('ready') && !states.has('not-ready')) {
    return {
      state: 'ready',
      identified: results.some(({ probe, result }) => probe.identifiesPod && result.state === 'ready'),
    }
  }
  const message = results
    .flatMap(({ probe, result }) => (result.state === 'ready' ? [] : [`${probe.name}: ${result.message}`]))
    .join('; ')
  return { state: states.has('not-ready') || states.has('no-answer') ? 'not-ready' : 'unknown', message }
}
