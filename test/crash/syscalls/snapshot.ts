/** What stands on the disk, in a form that can be compared. */
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'

/** Relative path to kind, mode, owner and content; undefined where there is nothing. */
export function snapshot(path: string): string | undefined {
  const entries: string[] = []
  // In the form with links, what counts is behind ..data; the generation's own name is random.
  const root = existsSync(join(path, '..data')) ? realpathSync(`${path}/..data`) : path
  if (lstatSync(root, { throwIfNoEntry: false }) === undefined) return undefined
  const walk = (relative: string): void => {
    const at = join(root, relative)
    const { mode, uid, gid } = lstatSync(at)
    const kind = mode & 0o170000
    const text = kind === 0o100000 ? readFileSync(at, 'utf8') : kind === 0o120000 ? readlinkSync(at) : ''
    entries.push([relative, mode.toString(8), `${uid}:${gid}`, text].join(' '))
    if (kind === 0o040000) for (const name of readdirSync(at).sort()) walk(join(relative, name))
  }
  walk('')
  return entries.join('\n')
}

/**
 * What holdfast has left where it should not: below `root`, each parent may hold one lock and one record for each target, and
 * a target in the form with links one generation.
 */
export function leftovers(root: string): string[] {
  const counts = new Map<string, number>()
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const { name } = entry
    const kind = /^(\.holdfast-[0-9a-f]{16})(\.lock$|\.\d+$|-)/.exec(name)
    const what =
      kind?.[2] === '-' || name === '..data_tmp'
        ? `staging ${name}`
        : kind?.[2] === '.lock'
          ? undefined
          : kind
            ? `record of ${kind[1] ?? ''}`
            : /^\.\.\d/.test(name)
              ? 'generation'
              : undefined
    if (what === undefined) continue
    const key = `${what} in ${entry.parentPath.slice(root.length) || '/'}`
    counts.set(key, (counts.get(key) ?? 0) + (what.startsWith('staging') ? 2 : 1))
  }
  return [...counts].filter(([, count]) => count > 1).map(([key]) => key)
}
