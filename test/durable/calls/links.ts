/* Links that another user made, or could have made: on the way to a target, inside it, and in place of a directory above it. */
import { dirname, resolve } from 'node:path'
import { find } from '../../crash/model/content.js'
import { type ModelDisk, rootInode } from '../../crash/model/model-disk.js'
import { makeDirectory, makeEntry } from '../../crash/model/scenario.js'
import { directory, first, numberOf, root, second, target, type Scene } from './scene.js'

const elsewhere = '/srv/of-another-user'

/** A directory of another user with what a publisher could mistake for its own, and a link to it. */
function linkOfOthers(disk: ModelDisk, path: string, uid = 7): void {
  if (!find(disk, '/srv')) makeDirectory(disk, '/srv', 0o755)
  makeDirectory(disk, elsewhere, 0o755)
  makeDirectory(disk, `${elsewhere}/certs`, 0o755)
  makeEntry(disk, `${elsewhere}/certs/tls.crt`, 'file', 0o644, 'of another user')
  disk.create(
    numberOf(disk, dirname(path)),
    path.slice(path.lastIndexOf('/') + 1),
    'symlink',
    { mode: 0o777, ...root, uid },
    elsewhere,
  )
}

/** Another user puts a link in place of the directory above the target. */
export function replaceByLink(disk: ModelDisk): void {
  const above = dirname(target)
  const holder = numberOf(disk, dirname(above))
  disk.link(
    holder,
    [
      [above.slice(above.lastIndexOf('/') + 1), undefined],
      ['moved-away', numberOf(disk, above)],
    ],
    'rename',
  )
  linkOfOthers(disk, above)
}

/** What only a link of others leads to, by the numbers of its inodes, with the link. */
export function beyondLinksOfOthers(disk: ModelDisk): Map<number, string> {
  const found = new Map<number, string>()
  const below = (number: number, link: string): void => {
    if (found.has(number)) return
    found.set(number, link)
    for (const child of disk.inode(number).now.entries.values()) below(child, link)
  }
  const walk = (number: number, path: string): void => {
    const holder = disk.inode(number).now.attributes
    for (const name of disk.inode(number).now.entries.keys()) {
      const child = disk.child(number, name)
      if (child?.type === 'directory') walk(child.number, `${path}/${name}`)
      // A link to a name beside it leads nowhere else.
      if (child?.type !== 'symlink' || !child.now.data.includes('/')) continue
      const isOfOthers = child.now.attributes.uid !== 0 || holder.uid !== 0 || (holder.mode & 0o002) !== 0
      const leads = isOfOthers ? find(disk, resolve(path, child.now.data)) : undefined
      if (leads !== undefined && leads.number !== rootInode) below(leads.number, `${path}/${name}`)
    }
  }
  walk(rootInode, '')
  return found
}

export const links: readonly Scene[] = [
  {
    name: 'below a link of another user',
    ends: 'TargetUnfit',
    before: (disk) => linkOfOthers(disk, '/etc/link'),
    run: directory({ target: '/etc/link/certs', files: second }),
  },
  {
    name: 'below a link in a directory to which everybody may write',
    ends: 'TargetUnfit',
    before: (disk) => {
      makeDirectory(disk, '/shared', 0o1777)
      linkOfOthers(disk, '/shared/link', 0)
    },
    run: directory({ target: '/shared/link/certs', files: second }),
  },
  {
    name: 'over a target into which another user has put a link',
    ends: 'replaced',
    before: async (disk, fs) => {
      await directory({ files: first })(fs)
      linkOfOthers(disk, `${target}/link`)
    },
    run: directory({ files: second }),
  },
]
