/** One kubelet in a node's namespaces: standalone, or a node of the cluster that its kubeconfig names. */
import { readFileSync, writeFileSync } from 'node:fs'
import { ApiClient } from '../e2e/api-client.js'
import type { KeyPair } from '../e2e/authority.js'
import { freePort } from '../e2e/ports.js'
import { until } from '../until.js'
import { containerdEndpoint } from './containerd.js'
import type { Program, Space } from './space.js'

/** Where it reads static pods, on the node. */
export const manifestDirectory = '/etc/kubernetes/manifests'
const configurationFile = '/etc/kubernetes/kubelet.json'

/** The parts of a pod that the tests read, as kubelet tells it. */
export interface Pod {
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly uid: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec: {
    readonly containers: readonly {
      readonly securityContext?: { readonly capabilities?: { readonly add?: readonly string[] } }
    }[]
  }
  readonly status: {
    readonly phase?: string
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
    readonly containerStatuses?: readonly ContainerStatus[]
    readonly initContainerStatuses?: readonly ContainerStatus[]
  }
}

export interface ContainerStatus {
  readonly name: string
  readonly ready: boolean
  readonly restartCount: number
  readonly containerID?: string
  readonly state: { readonly running?: object; readonly terminated?: { readonly exitCode: number } }
}

export interface KubeletOptions {
  /** Path of the program. */
  readonly program: string
  readonly nodeName: string
  readonly cgroupRoot: string
  /** Path on the node; absent: standalone. */
  readonly kubeconfig?: string
  /** kubelet asks the API server about its clients' rights, as with kubeadm; default: a certificate suffices. */
  readonly webhook?: boolean
  /** Default: none. */
  readonly readOnlyPort?: number
  /** The authority that must have signed a client's certificate; with one, a client may ask for everything. */
  readonly authority: string
  /** For its own addresses. */
  readonly serving: KeyPair
  /** A certificate that it takes. */
  readonly client: KeyPair
  /** A Go duration: between two lists of the manifest directory. inotify tells it of changes in between. */
  readonly fileCheckFrequency: string
  /** How often it looks at each pod and reports its node, as it has it by default; otherwise every 2 s. */
  readonly ownPace?: boolean
}

export class Kubelet {
  private running: Program | undefined
  private readonly client: ApiClient

  private constructor(
    private readonly space: Space,
    private readonly options: KubeletOptions,
    readonly port: number,
  ) {
    this.client = new ApiClient(port, options.authority, options.client)
  }

  /** Resolves when it answers. */
  static async start(space: Space, options: KubeletOptions): Promise<Kubelet> {
    const kubelet = new Kubelet(space, options, await freePort())
    await kubelet.start()
    return kubelet
  }

  /** Starts it again. Containers have been running all the while. */
  async start(changed: Partial<KubeletOptions> = {}): Promise<void> {
    const options = { ...this.options, ...changed }
    const configuration = configure(options, this.port)
    writeFileSync(this.space.onDisk(configurationFile), JSON.stringify(configuration, undefined, 2))
    const { program, nodeName, kubeconfig } = options
    const running = this.space.start('kubelet', program, [
      ...['--config', configurationFile, '--hostname-override', nodeName, '--v=2'],
      ...(kubeconfig === undefined ? [] : ['--kubeconfig', kubeconfig]),
    ])
    this.running = running
    await until(
      'kubelet answers',
      () => {
        if (!running.running) throw new Error(`it has ended: ${this.tail(20)}`)
        return this.pods()
      },
      // With `webhook` this needs an API server, which may itself be a pod of this kubelet.
      { within: 180_000, every: 100 },
    )
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.running?.end(signal)
    this.client.disconnect()
  }

  /** By which holdfast, on this node, asks it. */
  probeFlags(): string[] {
    const { authority, client } = this.options
    return [
      ...[`--kubelet-url=https://127.0.0.1:${this.port}`, `--kubelet-ca=${authority}`],
      ...[`--kubelet-cert=${client.certificate}`, `--kubelet-key=${client.key}`],
    ]
  }

  /** The pods that it runs. @throws Error while it does not answer */
  async pods(): Promise<Pod[]> {
    const { status, body } = await this.client.call('GET', '/pods')
    if (status !== 200) throw new Error(`HTTP ${status}: ${JSON.stringify(body)}`)
    return (body as { items: Pod[] | null }).items ?? []
  }

  /** The pod of this name; a static pod's is NAME-NODE. */
  async pod(name: string): Promise<Pod | undefined> {
    return (await this.pods()).find(({ metadata }) => metadata.name === name)
  }

  /** All that it has logged. */
  log(): string {
    return readFileSync(this.space.logFile('kubelet'), 'utf8')
  }

  /** The newest lines, without those that kubelet repeats every few seconds in any case. */
  tail(lines: number): string {
    return this.lines(/^(?!.*(eviction_manager|cri_stats_provider|kubelet_node_status|Creating a mirror pod))/)
      .slice(-lines)
      .join('\n')
  }

  /** The lines that say that a manifest could not be read, in the words of pkg/kubelet/config/file.go and file_linux.go. */
  manifestFaults(): string[] {
    return this.lines(
      /couldn't parse as pod|Could not process manifest file|Unable to process watch event|Unable to read config path|can't process config file|Manifest path is not/i,
    )
  }

  /** How often a static pod appeared in the manifest directory (ADD) or went from it (REMOVE), by its full name. */
  manifestChanges(verb: 'ADD' | 'REMOVE' | 'UPDATE' | 'DELETE', pod: string): number {
    return this.lines(new RegExp(`"SyncLoop ${verb}" source="file" pods=.*"${pod}"`)).length
  }

  /** How often it ended a container of the pod. */
  kills(pod: string): number {
    return this.lines(new RegExp(`"Killing container with a grace period" pod="${pod}"`)).length
  }

  private lines(pattern: RegExp): string[] {
    return this.log()
      .split('\n')
      .filter((line) => pattern.test(line))
  }
}

/** Everything that a small machine, its own kernel and no cloud need to say; the defaults for the rest. */
function configure(options: KubeletOptions, port: number): object {
  const { webhook = false, readOnlyPort = 0 } = options
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    staticPodPath: manifestDirectory,
    fileCheckFrequency: options.fileCheckFrequency,
    containerRuntimeEndpoint: containerdEndpoint,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: options.cgroupRoot,
    failCgroupV1: false,
    failSwapOn: false,
    enforceNodeAllocatable: [],
    localStorageCapacityIsolation: false,
    makeIPTablesUtilChains: false,
    // A disk that is nearly full is the machine's affair.
    evictionHard: {
      'memory.available': '1Mi',
      'nodefs.available': '0%',
      'nodefs.inodesFree': '0%',
      'imagefs.available': '0%',
      'imagefs.inodesFree': '0%',
    },
    imageGCHighThresholdPercent: 100,
    // The API server asks it at the address that it tells as the node's, which cannot be loopback.
    address: '0.0.0.0',
    port,
    readOnlyPort,
    healthzPort: 0,
    tlsCertFile: options.serving.certificate,
    tlsPrivateKeyFile: options.serving.key,
    authentication: {
      x509: { clientCAFile: options.authority },
      anonymous: { enabled: false },
      webhook: { enabled: webhook },
    },
    authorization: { mode: webhook ? 'Webhook' : 'AlwaysAllow' },
    // A test waits for the next one of these.
    ...(!options.ownPace && { syncFrequency: '2s', nodeStatusUpdateFrequency: '2s' }),
  }
}
