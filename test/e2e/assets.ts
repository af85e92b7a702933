/** The programs of the control plane: from KUBEBUILDER_ASSETS, or built once into a cache (control-plane/build.sh). */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { project } from '../project.js'

const modules = readFileSync(join(project, 'test/e2e/control-plane/go.mod'), 'utf8')

/** Of the control plane and of the nodes. */
export const kubernetesVersion = /^\tk8s\.io\/kubernetes (v\S+)$/m.exec(modules)?.[1] ?? ''

export type Program =
  | 'dynamic-certificates'
  | 'etcd'
  | 'etcdutl'
  | 'helm'
  | 'kube-apiserver'
  | 'kube-controller-manager'
  | 'kube-scheduler'
  | 'kubeadm'
  | 'kube-state-metrics'
  | 'kubectl'
  | 'kubelet'
  | 'kubelet-decode'
  | 'kubelet-decode-1.35'

const found = new Map<Program, Promise<string>>()

/**
 * The program's absolute path. The first call may build it, which takes minutes for kube-apiserver.
 * @throws Error with the build's own words, where there is neither the program nor Go
 */
export function findProgram(program: Program): Promise<string> {
  const known = found.get(program) ?? build(program)
  found.set(program, known)
  return known
}

async function build(program: Program): Promise<string> {
  const script = join(project, 'test/e2e/control-plane/build.sh')
  const { stdout } = await promisify(execFile)(script, [program])
  return stdout.trim()
}
