import type { Manifest } from './manifest.js'

/** What one probe says. `unknown`: it could not ask, and leaves the verdict to the others. */
export type Verdict =
  { readonly ready: true } | { readonly ready: false; readonly message: string; readonly unknown?: true }

export interface Probe {
  /** For people: `https://localhost:6443/readyz`. */
  readonly name: string
  /** Never throws. */
  ask(manifest: Manifest, signal: AbortSignal): Promise<Verdict>
}

/** Ready only where at least one probe says so, and none denies it. */
export async function askAll(probes: readonly Probe[], manifest: Manifest, signal: AbortSignal): Promise<Verdict> {
  const verdicts = await Promise.all(
    probes.map(async (probe) => ({ probe, verdict: await probe.ask(manifest, signal) })),
  )
  const messages = verdicts.flatMap(({ probe, verdict }) =>
    verdict.ready ? [] : [{ text: `${probe.name}: ${verdict.message}`, unknown: verdict.unknown === true }],
  )
  const denied = messages.filter(({ unknown }) => !unknown)
  if (denied.length === 0 && messages.length < probes.length) return { ready: true }
  return { ready: false, message: messages.map(({ text }) => text).join('; ') }
}
