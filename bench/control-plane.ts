import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { project } from '../test/project.js'

/** etcd and kube-apiserver, built where they are not there yet: minutes, the first time. @throws Error with why it cannot be */
export function buildControlPlane(): void {
  const build = join(project, 'test/e2e/control-plane/build.sh')
  execFileSync(build, ['etcd', 'kube-apiserver'], { stdio: ['ignore', 'ignore', 'inherit'] })
}
