import type { Manifest } from '../pod/manifest.js'

/**
 * The answer of one probe. `no-answer`: no endpoint could say; where no other probe is ready, the pod is not. `unknown`: the probe
 * cannot ask, or its endpoint refused, which says nothing of the pod.
 */
export type ProbeResult =
  | { readonly state: 'ready' }
  | {
      readonly state: 'not-ready' | 'no-answer' | 'unknown'
      readonly message: string
      /** Advice where the endpoint refuses the probe, or no known authority has signed its certificate. */
      readonly refusal?: string
      /** No connection came about. */
      readonly isDown?: true
    }

/** The joint answer of all probes. */
export type Readiness =
  /** `identified`: by a probe that tells one version of the pod from another. */
  | { readonly state: 'ready'; readonly identified: boolean }
  | {
      readonly state: 'not-ready' | 'unknown'
      readonly message: string
      /** No probe says so: a probe that could ask before cannot ask now. */
      readonly isBlind?: true
    }

export interface Probe {
  /** For people: `https://localhost:6443/readyz`. */
  readonly name: string
  /** It tells one version of the pod from another. What merely asks an address may hear the old pod. */
  readonly identifiesPod?: true
  /** Never throws. */
  ask(manifest: Manifest, signal: AbortSignal): Promise<ProbeResult>
}

/** Keys that tell the probes of one command apart in a file: their names, numbered where several have the same. */
export function keysOf(probes: readonly Probe[]): string[] {
  const names = probes.map(({ name }) => name)
  return names.map((name, index) => `${name} ${names.slice(0, index).filter((other) => other === name).length + 1}`)
}

/**
 * Ready: at least one probe says so, and none denies it. `couldAsk`: keys of probes that could ask before; while one of them cannot, the
 * pod is not ready. Unknown: no probe could ask. A revision must not be taken back because the
 * monitor itself lacks a right.
 */
export async function askAll(
  probes: readonly Probe[],
  manifest: Manifest,
  signal: AbortSignal,
  couldAsk: readonly string[] = [],
): Promise<Readiness> {
  const results = await Promise.all(probes.map(async (probe) => ({ probe, result: await probe.ask(manifest, signal) })))
  const keys = keysOf(probes)
  const isBlind = results.some(
    ({ result: { state } }, index) =>
      (state === 'unknown' || state === 'no-answer') && couldAsk.includes(keys[index] ?? ''),
  )
  const states = new Set(results.map(({ result }) => result.state))
  if (states.has('ready') && !states.has('not-ready') && !isBlind) {
    return {
      state: 'ready',
      identified: results.some(({ probe, result }) => probe.identifiesPod && result.state === 'ready'),
    }
  }
  const message = results
    .flatMap(({ probe, result }) => (result.state === 'ready' ? [] : [`${probe.name}: ${result.message}`]))
    .join('; ')
  if (isBlind && !states.has('not-ready')) return { state: 'not-ready', message, isBlind }
  return { state: states.has('not-ready') || states.has('no-answer') ? 'not-ready' : 'unknown', message }
}
