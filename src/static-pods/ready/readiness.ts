import type { Manifest } from '../pod/manifest.js'

/** What an answer says of the pod (`silent`: no endpoint could say), and whether a rollout begins after such an answer. */
interface AnswerMeaning {
  readonly pod: 'ready' | 'not-ready' | 'silent' | 'unknown'
  readonly begins: boolean | 'beside another'
}

/** Every answer of a probe. A pod that is down stops no rollout: to mend such a pod is the main use. */
const meanings = {
  ready: { pod: 'ready', begins: true },
  /** The pod, or who runs it, says no; or no process serves the pod's address. */
  'not-ready': { pod: 'not-ready', begins: true },
  /** The kubelet does not run the pod. */
  absent: { pod: 'not-ready', begins: true },
  /** Another server than the named one has the pod's address: its certificate does not fit, or it knows no such path. Or nothing has its name. */
  stranger: { pod: 'not-ready', begins: false },
  /** The kubelet or the API server is down. */
  'no-answer': { pod: 'silent', begins: true },
  /** The resolver says that no host has the API server's name: as if it were down, for a static pod may serve that name. */
  'no-host': { pod: 'silent', begins: false },
  /** The API server, or the kubelet, cannot say now. */
  'server-error': { pod: 'unknown', begins: true },
  /** The kubelet has no API server to ask whether it may answer. */
  'no-authorizer': { pod: 'unknown', begins: 'beside another' },
  /** The probe cannot be run, or its endpoint refuses it. */
  'cannot-ask': { pod: 'unknown', begins: false },
} as const satisfies Record<string, AnswerMeaning>

type Meanings = typeof meanings
type Refusing = { [State in keyof Meanings]: Meanings[State]['begins'] extends true ? never : State }[keyof Meanings]

/** The answer of one probe. `advice`: what to do about an answer that stops a rollout. */
export type ProbeResult =
  | ({ readonly state: 'ready' } & Lives)
  | { readonly state: Exclude<keyof Meanings, Refusing | 'ready'>; readonly message: string }
  | { readonly state: Refusing; readonly message: string; readonly advice: string }

/** What a pod that is ready now has gone through. */
interface Lives {
  /** How often its containers have started again. */
  readonly restarts?: number
  /** Milliseconds of the longest of their last lives. */
  readonly lived?: number
}

/** The joint answer of all probes. */
export type Readiness =
  /** `identified`: by a probe that tells one version of the pod from another. */
  | ({ readonly state: 'ready'; readonly identified: boolean } & Lives)
  | { readonly state: 'not-ready' | 'unknown'; readonly message: string }

export interface Probe {
  /** For people: `https://localhost:6443/readyz`. */
  readonly name: string
  /** It tells one version of the pod from another. What merely asks an address may hear the old pod. */
  readonly identifiesPod?: true
  /** Never throws. */
  ask(manifest: Manifest, signal: AbortSignal): Promise<ProbeResult>
  /** The end of the log of a container that is not ready; undefined where nobody tells. Never throws. */
  lastWords?(manifest: Manifest, signal: AbortSignal): Promise<string | undefined>
}

export interface ProbeAnswer {
  readonly probe: Probe
  readonly result: ProbeResult
}

/** Asks every probe for every pod at the same time. A probe that only asks an address asks the same for each pod. */
export async function askEach(
  probes: readonly Probe[],
  manifests: readonly Manifest[],
  signal: AbortSignal,
): Promise<readonly ProbeAnswer[]> {
  const asked = probes.flatMap((probe) =>
    (probe.identifiesPod ? manifests : manifests.slice(0, 1)).map(async (manifest) => ({
      probe,
      result: await probe.ask(manifest, signal),
    })),
  )
  return Promise.all(asked)
}

/** Why a rollout does not begin with these answers, and what to do; undefined: it may begin. */
export function refusalOf(answers: readonly ProbeAnswer[]): string | undefined {
  const begins = ({ result }: ProbeAnswer): AnswerMeaning['begins'] => meanings[result.state].begins
  const isAnswered = answers.some((answer) => begins(answer) === true)
  const refused = answers.find((answer) => begins(answer) === false || (begins(answer) !== true && !isAnswered))
  if (refused === undefined || !('advice' in refused.result)) return undefined
  const { message, advice } = refused.result
  return `${refused.probe.name}: ${message}; nothing was changed; ${advice}`
}

/**
 * Ready: at least one probe says so, and none denies it; with `every`, all say so. Unknown: nobody could say; a revision must not be taken
 * back because the monitor itself lacks a right.
 */
export function readinessOf(answers: readonly ProbeAnswer[], every: boolean): Readiness {
  const said = new Set<AnswerMeaning['pod']>(answers.map(({ result }) => meanings[result.state].pod))
  if (said.has('ready') && !said.has('not-ready') && (!every || said.size === 1)) {
    const ready = answers.flatMap(({ probe, result }) => (result.state === 'ready' ? [{ probe, ...result }] : []))
    return {
      state: 'ready',
      identified: ready.some(({ probe }) => probe.identifiesPod),
      restarts: Math.max(...ready.map(({ restarts = 0 }) => restarts)),
      lived: Math.max(...ready.map(({ lived = 0 }) => lived)),
    }
  }
  const message = answers
    .flatMap(({ probe, result }) => (result.state === 'ready' ? [] : [`${probe.name}: ${result.message}`]))
    .join('; ')
  return { state: said.has('not-ready') || said.has('silent') ? 'not-ready' : 'unknown', message }
}

/** The milliseconds of a watch without an end: as a file can keep them. */
export const noLimit = Number.MAX_SAFE_INTEGER

/** How to ask a kubelet. Each try reads the files again, for another program may renew them. */
export interface KubeletAccess {
  /** `https://node-1:10250`. */
  readonly url: string
  /** PEM; null: the system's authorities. */
  readonly authority: string | null
  /** PEM, with its key; null: none. */
  readonly certificate: string | null
  readonly key: string | null
  readonly tokenFile: string | null
}

/** The readiness probes as a file keeps them: the run that finishes a rollout after a crash has no flags. Paths are absolute. */
export interface ReadinessSettings {
  readonly urls: readonly string[]
  /** Milliseconds for which the pod must answer; absent where no flag says so. */
  readonly readyFor?: number
  /** PEM, for the URLs. */
  readonly authority: string | null
  readonly commands: readonly string[]
  readonly kubelet: KubeletAccess | null
  readonly mirrorPod: {
    readonly kubeconfig: string
    readonly context: string | null
    readonly namespace: string | null
    readonly nodeName: string
  } | null
}
