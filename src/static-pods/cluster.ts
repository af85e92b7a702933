/*
 * The API server, as far as an installer and a monitor ask it. Every failure but a 4xx is tried again until the caller's
 * deadline; 429 is tried again too, when the server says, since it is no verdict on what was asked.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../log.js'
import { isAbsent } from '../objects/kubernetes/absence.js'
import type { ApiClient, ApiResponse } from '../objects/kubernetes/client.js'
import type { KubernetesObject, ObjectReference } from '../objects/types.js'
import { messageOf, StaticPodError } from './failure.js'
import { asMap, asText } from './json.js'

/** Milliseconds; tests make them smaller. */
export interface ClusterTiming {
  /** For one answer. library-go's client waits 14 s, too. */
  readonly request: number
  /** Between two tries: doubles from the first to the second. */
  readonly backoff: readonly [first: number, longest: number]
}

export const clusterTiming: ClusterTiming = { request: 14_000, backoff: [100, 5_000] }

/** @throws Error naming field or key, for an object that is not whole; holds no value */
export type DecodeObject = (reference: ObjectReference, json: unknown) => KubernetesObject

export class Cluster {
  constructor(
    readonly api: ApiClient,
    private readonly decode: DecodeObject,
    private readonly log: Log,
    private readonly timing: ClusterTiming = clusterTiming,
  ) {}

  /** The object, from a read that accepts no cache; undefined where the API server says that it does not exist. */
  async read(reference: ObjectReference, signal: AbortSignal): Promise<KubernetesObject | undefined> {
    const { kind, namespace, name } = reference
    const resource = kind === 'Secret' ? 'secrets' : 'configmaps'
    const what = `${kind} ${namespace}/${name}`
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/${resource}/${encodeURIComponent(name)}`
    const body = await this.get(what, path, {}, signal)
    if (body === undefined) return undefined
    try {
      return this.decode(reference, body)
    } catch (error) {
      throw new StaticPodError(`${what}: ${messageOf(error)}`, { cause: error })
    }
  }

  /**
   * GETs a document until there is an answer; undefined where the API server says that it does not exist. `tries`: at most so many.
   * @throws StaticPodError for any other 4xx; the signal's reason when it aborts, or the last failure with it
   */
  async get(
    what: string,
    path: string,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
    tries = Infinity,
  ): Promise<unknown> {
    const [first, longest] = this.timing.backoff
    for (let tried = 1, pause = first; ; tried++, pause = Math.min(pause * 2, longest)) {
      const { answer, failure } = await this.#ask(what, path, query, signal)
      if (answer?.status === 200) return answer.body
      if (answer && isAbsent(answer)) return undefined
      const problem = failure ?? this.#refusal(what, answer)
      const final = answer !== undefined && answer.status >= 400 && answer.status < 500 && answer.status !== 429
      if (final || tried >= tries) throw problem
      if (signal.aborted) throw problem
      this.log.warn({ what, error: problem.message, tried }, 'the API server gave no answer; trying again')
      // Half of it by chance, so that the installers of many nodes do not come back in step.
      const wait = Math.max(answer?.retryAfter ?? 0, pause / 2 + Math.random() * (pause / 2))
      await sleep(wait, undefined, { signal }).catch(() => {
        throw problem
      })
    }
  }

  async #ask(
    what: string,
    path: string,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<{ answer?: ApiResponse; failure?: StaticPodError }> {
    signal.throwIfAborted()
    try {
      return { answer: await this.api.get(path, query, { signal, timeout: this.timing.request }) }
    } catch (error) {
      return { failure: new StaticPodError(`${what}: ${messageOf(error)}`, { cause: error }) }
    }
  }

  #refusal(what: string, answer: ApiResponse | undefined): StaticPodError {
    const status = answer?.status ?? 0
    const said = (asText(asMap(answer?.body)?.message) ?? '').replace(/\p{Cc}+/gu, ' ').slice(0, 300)
    const advice =
      status === 403
        ? '; "holdfast rbac install" with the same flags prints the Role that is needed'
        : status === 401
          ? '; the API server does not accept the credentials: see the kubeconfig'
          : status === 404
            ? '; nothing is served at this path: is it the address of a Kubernetes API server?'
            : ''
    return new StaticPodError(`${what}: HTTP ${status}${said && ` (${said})`}${advice}`)
  }
}
