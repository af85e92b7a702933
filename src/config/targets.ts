/** Checks that need all of the configuration: targets against each other, against the system, and against holdfast's own paths. */
import { basename, dirname } from 'node:path'
import type { ReadDirectory } from './directory.js'
import { isWithin } from './paths.js'
import { quote } from '../quote.js'

/** Directories that hold more than one program's files: to replace one of them would take the others' away. */
const systemDirectories = new Set(
  `/ /bin /boot /etc /home /lib /lib32 /lib64 /libx32 /media /mnt /opt /root /run /sbin /srv /tmp /usr /var
  /usr/bin /usr/include /usr/lib /usr/lib32 /usr/lib64 /usr/libexec /usr/local /usr/local/bin /usr/local/etc
  /usr/local/lib /usr/local/sbin /usr/local/share /usr/sbin /usr/share /var/cache /var/lib /var/lib/kubelet
  /var/local /var/lock /var/log /var/mail /var/opt /var/run /var/spool /var/tmp
  /etc/kubernetes /etc/ssl /etc/ssl/certs /etc/ssl/private /etc/pki /etc/systemd /etc/systemd/system`.split(/\s+/),
)

/** The kernel's own file systems, whatever the depth. */
const kernelDirectories = ['/dev', '/proc', '/sys']

/** kubelet's inotify watch follows the old directory, and would see no manifest again. Source: pkg/kubelet/config/file_linux.go. */
const manifestDirectory = '/etc/kubernetes/manifests'

/** Paths that holdfast itself needs, which no publication may sweep away. */
export interface OwnPath {
  /** `stateDirectory`, as it is called in messages. */
  readonly name: string
  readonly path: string
}

export function reportTargetProblems(directories: readonly ReadDirectory[], own: readonly OwnPath[]): void {
  const byPath = new Map<string, ReadDirectory>()
  for (const directory of directories) {
    const { at, configuration } = directory
    const { path } = configuration
    if (reportUnfitTarget(directory)) continue
    for (const { name, path: needed } of own) {
      if (isWithin(needed, path)) at.wrong(`${quote(path)} holds ${name}, ${quote(needed)}`, 'it would be replaced too')
    }
    const first = byPath.get(path)
    if (first !== undefined) {
      at.wrong(
        `${quote(path)} is the target of ${first.configuration.place} already`,
        'put all the contents into one directory',
      )
    } else byPath.set(path, directory)
  }
  // Only now are all of them known: the inner one of two may come first.
  for (const { at, configuration } of directories) {
    const outer = ancestors(configuration.path).find((ancestor) => byPath.has(ancestor))
    const holder = outer === undefined ? undefined : byPath.get(outer)
    if (holder === undefined) continue
    const message = `${quote(configuration.path)} is inside the target of ${holder.configuration.place}`
    at.wrong(message, 'put all the contents into one directory, with into')
  }
}

function reportUnfitTarget({ at, configuration: { path } }: ReadDirectory): boolean {
  const kernel = kernelDirectories.find((directory) => isWithin(path, directory))
  if (kernel !== undefined) {
    at.wrong(`${quote(path)} is in ${kernel}, which keeps nothing`, 'name a directory on a disk')
  } else if (systemDirectories.has(path)) {
    at.wrong(`${quote(path)} is a system directory`, 'name a directory of its own below it')
  } else if (path === manifestDirectory) {
    at.wrong(
      `${quote(path)} is watched by kubelet, which would not notice that the directory was replaced`,
      'publish beside it',
    )
  } else if (basename(path).startsWith('.holdfast-')) {
    at.wrong(`${quote(path)} has a name that holdfast reserves for its own files`, 'choose another name')
  } else return false
  return true
}

function ancestors(path: string): string[] {
  const found = []
  for (let above = dirname(path); above !== '/'; above = dirname(above)) found.push(above)
  return found
}
