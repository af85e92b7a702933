/** Paths that no target may have, in any configuration. */
import { basename } from 'node:path'
import type { ValueType } from './field.js'
import { except, isWithin, nodePath, type PathContext } from './paths.js'
import { quote } from '../quote.js'
import type { Value } from './value.js'

/** Directories that hold more than one program's files: to replace one of them would take the others' away. */
const systemDirectories = new Set(
  `/ /bin /boot /etc /home /lib /lib32 /lib64 /libx32 /media /mnt /opt /root /run /sbin /srv /tmp /usr /var
  /usr/bin /usr/include /usr/lib /usr/lib32 /usr/lib64 /usr/libexec /usr/local /usr/local/bin /usr/local/etc
  /usr/local/lib /usr/local/sbin /usr/local/share /usr/sbin /usr/share /var/cache /var/lib /var/lib/kubelet
  /var/local /var/lock /var/log /var/mail /var/opt /var/run /var/spool /var/tmp
  /etc/kubernetes /etc/ssl /etc/ssl/certs /etc/ssl/private /etc/pki /etc/systemd /etc/systemd/system`.split(/\s+/),
)

/** The kernel's own file systems, at every depth. */
const kernelDirectories = ['/dev', '/proc', '/sys']

/** kubelet's inotify watch follows the old directory, and would see no manifest again. Source: pkg/kubelet/config/file_linux.go. */
const manifestDirectory = '/etc/kubernetes/manifests'

/** How the names of holdfast's own files start. */
const ownPrefix = '.holdfast-'

/** The path of a target. A schema refuses the unfit ones as people write them; with detours, only reportTargetProblems does. */
export const targetPath: ValueType<string, PathContext> = {
  read: nodePath.read,
  schema: () => {
    const { allOf, ...schema } = nodePath.schema()
    const unfit = [...systemDirectories, manifestDirectory].filter((directory) => directory !== '/')
    const more = except(
      schema,
      `^(?:${unfit.join('|')})?/?$`,
      `^(?:${kernelDirectories.join('|')})(?:/(?!\\.)[^/]*)*$`,
      `(?:^|/)${ownPrefix.replace('.', '\\.')}[^/]*/?$`,
    )
    return { ...more, allOf: [allOf ?? [], more['allOf'] ?? []].flat() }
  },
}

/** Reports a path that no target can have, and answers whether it did. */
export function reportUnfitTarget(at: Value, path: string): boolean {
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
  } else if (basename(path).startsWith(ownPrefix)) {
    at.wrong(`${quote(path)} has a name that holdfast reserves for its own files`, 'choose another name')
  } else return false
  return true
}
