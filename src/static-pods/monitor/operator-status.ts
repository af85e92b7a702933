/*
 * With a startup monitor, OpenShift's installer controller leaves it to the monitor to say in the operator's status that a node has
 * come to its target revision (library-go: pkg/operator/staticpod/startupmonitor; installer_controller.go, staticPodStateReady).
 */
import type { Log } from '../../log.js'
import { isAbsent, statusMessage, unsentAdvice } from '../../kubernetes/reads/api-error.js'
import type { ApiClient, ApiResponse } from '../../kubernetes/connection/client.js'
import { StaticPodError } from '../failure.js'
import { asList, asMap, asText } from '../json.js'

/** Milliseconds for one request. */
const timeout = 5_000

/** Updates that may meet a conflict; library-go tries as often. */
const tries = 5

/** `kubeapiservers.operator.openshift.io/cluster`. */
export interface OperatorResource {
  readonly resource: string
  readonly group: string
  readonly name: string
}

/** Says that this node runs the revision, where it is the node's target; does nothing where another one is. */
export class OperatorStatus {
  constructor(
    private readonly api: Pick<ApiClient, 'get' | 'send'>,
    private readonly operator: OperatorResource,
    private readonly nodeName: string,
    private readonly log: Log,
  ) {}

  /** @throws StaticPodError with the missing right; ConnectionError where the API server gives no answer */
  async setCurrent(revision: number, signal: AbortSignal): Promise<void> {
    const { resource, group, name } = this.operator
    const found = await this.#get(`/apis/${group}`, 'get', signal)
    const version = asText(asMap(asMap(found)?.preferredVersion)?.version)
    if (version === undefined) throw new StaticPodError(`the API server does not serve the group ${group}`)
    const path = `/apis/${group}/${encodeURIComponent(version)}/${resource}/${encodeURIComponent(name)}`
    for (let tried = 1; ; tried++) {
      const body = await this.#get(path, 'get', signal)
      const nodes = asList(asMap(asMap(body)?.status)?.nodeStatuses).map((node) => asMap(node) ?? {})
      const own = nodes.find((node) => node.nodeName === this.nodeName)
      const target = own?.targetRevision ?? 0
      if (own?.currentRevision === revision && target === 0) return
      if (target !== revision) {
        this.log.warn(
          { operator: name, node: this.nodeName, targetRevision: target },
          `revision ${revision} is not this node's target revision: the monitor leaves the operator's status as it is`,
        )
        return
      }
      // The version makes it an update: a merge patch of an older one is a conflict.
      const { resourceVersion } = asMap(asMap(body)?.metadata) ?? {}
      const nodeStatuses = nodes.map((node) =>
        node === own ? { ...node, currentRevision: revision, targetRevision: 0 } : node,
      )
      const patch = { metadata: { resourceVersion }, status: { nodeStatuses } }
      const answer = await this.api.send('PATCH', `${path}/status`, patch, { signal, timeout })
      if (answer.status === 200) return
      if (answer.status !== 409 || tried >= tries) throw this.#refusal(answer, 'patch')
    }
  }

  async #get(path: string, verb: string, signal: AbortSignal): Promise<unknown> {
    const answer = await this.api.get(path, {}, { signal, timeout })
    if (answer.status === 200) return answer.body
    throw this.#refusal(answer, verb)
  }

  #refusal(answer: ApiResponse, verb: string): StaticPodError {
    const { resource, group, name } = this.operator
    const what = `${resource}.${group}/${name}`
    if (isAbsent(answer, name)) return new StaticPodError(`${what} does not exist`)
    const said = statusMessage(answer.body)
    const subresource = verb === 'patch' ? `${resource}/status` : resource
    const right =
      answer.status === 403
        ? `it needs a ClusterRole that allows the verb ${verb} on the resource ${subresource} of ${group} with resourceNames: [${name}]`
        : undefined
    const advice = unsentAdvice(answer) ?? right
    const failed = `${what}: ${verb} failed with HTTP ${answer.status}${said && ` (${said})`}`
    return new StaticPodError(advice === undefined ? failed : `${failed}: ${advice}`)
  }
}
