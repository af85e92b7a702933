/**
 * The control groups of one node: below one of their own in each hierarchy, which is removed when this process ends, however it
 * ends. Both versions: with version 1 there is a hierarchy for each controller, with version 2 one for all.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'

const mountPoint = '/sys/fs/cgroup'
/** Those that kubelet and runc ask for. */
const controllers = ['cpu', 'cpuacct', 'cpuset', 'memory', 'pids']

/** Whether there are control groups, and those that kubelet needs among them. */
export function haveCgroups(): boolean {
  const unified = join(mountPoint, 'cgroup.controllers')
  if (!existsSync(unified)) return controllers.every((each) => existsSync(join(mountPoint, each, 'tasks')))
  const offered = readFileSync(unified, 'utf8').trim().split(' ')
  return ['cpu', 'cpuset', 'memory', 'pids'].every((each) => offered.includes(each))
}

/** Makes the groups; returns their path below each hierarchy's root: what kubelet calls its cgroupRoot. */
export function makeCgroups(name: string): string {
  const unified = existsSync(join(mountPoint, 'cgroup.controllers'))
  const hierarchies = unified ? [mountPoint] : directoriesOf(mountPoint)
  if (unified) {
    writeFileSync(join(mountPoint, 'cgroup.subtree_control'), '+cpu +cpuset +memory +pids')
  }
  const groups = hierarchies.map((hierarchy) => join(hierarchy, name))
  removeAtTheEnd(groups)
  for (const group of groups) mkdirSync(group)
  return `/${name}`
}

/**
 * The hierarchies: `cpu,cpuacct` may be one directory, with a link for each of its names. `unified` is version 2 beside version 1,
 * with no controllers: runc makes groups there, too.
 */
function directoriesOf(path: string): string[] {
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(path, entry.name))
}

/** A shell whose standard input ends with this process. A group goes when it holds no process, so the shell tries for a while. */
function removeAtTheEnd(groups: readonly string[]): void {
  const script = `
while read -r _; do :; done
tries=0
while [ "$tries" -lt 100 ]; do
  find "$@" -depth -type d -exec rmdir {} + 2>/dev/null
  gone=yes
  for group; do [ -d "$group" ] && gone=; done
  [ -z "$gone" ] || exit 0
  tries=$((tries + 1))
  sleep 0.1
done`
  const shell = spawn('/bin/sh', ['-c', script, 'cgroups', ...groups], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  shell.unref()
  if (shell.stdin instanceof Socket) shell.stdin.unref()
}
