/** One containerd in a node's namespaces, with separate directories, and the images that it has. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { until } from '../until.js'
import type { Program, Space } from './space.js'

const socket = '/run/containerd/containerd.sock'
const networks = '/etc/kubernetes/networks'
/** The endpoint for kubelet. */
export const containerdEndpoint = `unix://${socket}`

export class Containerd {
  private constructor(
    private readonly space: Space,
    private readonly program: Program,
  ) {}

  /** Resolves when it answers. `sandboxImage` is what holds a pod's namespaces: it waits, and does nothing. */
  static async start(space: Space, sandboxImage: string): Promise<Containerd> {
    const configuration = '/etc/kubernetes/containerd.toml'
    writeFileSync(space.onDisk(configuration), configure(sandboxImage), { mode: 0o600 })
    // Without a network's configuration the node would not be ready. Pods with a network of their own there are none.
    mkdirSync(space.onDisk(networks))
    const network = { cniVersion: '0.3.1', name: 'none', plugins: [{ type: 'none' }] }
    writeFileSync(space.onDisk(`${networks}/none.conflist`), JSON.stringify(network))
    const program = space.start('containerd', 'containerd', ['--config', configuration])
    const containerd = new Containerd(space, program)
    await until(
      'containerd answers',
      async () => {
        if (!program.running) throw new Error(readFileSync(space.logFile('containerd'), 'utf8').slice(-2000))
        return (await space.run('ctr', ['--address', socket, 'version'])).code === 0
      },
      { within: 90_000, every: 100 },
    )
    return containerd
  }

  /** Takes the images in from an archive, as `docker save` writes it. */
  async load(archive: string): Promise<void> {
    await this.ctr('images', 'import', archive)
  }

  /** Sends a signal to the first process of the container, as it is named in the status of its pod: `containerd://ID`. */
  async signal(containerId: string, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    await this.ctr('tasks', 'kill', '--signal', signal, containerId.replace('containerd://', ''))
  }

  /** Identifiers of the containers that have a process. */
  async running(): Promise<string[]> {
    return (await this.ctr('tasks', 'list', '--quiet')).split('\n').filter((id) => id !== '')
  }

  private async ctr(...args: string[]): Promise<string> {
    return this.space.demand('ctr', ['--address', socket, '--namespace', 'k8s.io', ...args])
  }

  async stop(): Promise<void> {
    await this.program.end('SIGTERM')
  }
}

/** Without CAP_SYS_RESOURCE no process may lower an OOM score, and not every machine has the AppArmor profiles' parser. */
function configure(sandboxImage: string): string {
  const cri = 'plugins."io.containerd.grpc.v1.cri"'
  return `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "${socket}"
[${cri}]
  sandbox_image = "${sandboxImage}"
  restrict_oom_score_adj = true
  disable_apparmor = true
[${cri}.containerd]
  snapshotter = "overlayfs"
[${cri}.cni]
  conf_dir = "${networks}"
`
}
