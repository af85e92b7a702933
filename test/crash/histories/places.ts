/** The few names of a history's world: few, so that operations meet each other. `o` is the root of another file system. */
import { posix } from 'node:path'
import { ownPrefix } from '../judge/names.js'

/** Those that exist, durable, before anything happens; the same shape on both file systems, so that inodes have the same numbers. */
export const initialDirectories = ['a', 'a/p', 'b', 'o/a', 'o/a/p', 'o/b']
export const otherFileSystem = 'o'

export const directories = ['a', 'b', 'c', 'a/p', 'a/q', 'b/p', 'c/p', 'o/a', 'o/b', 'o/a/p', 'o/b/p']

/** The last letter stands for the form: a directory, one that keeps its history, a file, or links. */
export const targets = [
  ...['a/p/t', 'b/p/t', 'a/q/t', 'c/p/t', 'a/t', 'o/a/p/t'],
  ...['a/p/h', 'b/p/h', 'c/p/h'],
  ...['a/p/f', 'b/p/f', 'c/p/f', 'o/a/p/f'],
  ...['a/p/l', 'b/p/l', 'c/p/l'],
]

/** Durable files of other programs: the program leaves them alone through all changes around them. */
export const bystanders = ['by', 'a/by', 'a/p/by', 'b/by', 'o/a/p/by', 'a/p/.holdfast-notours']

export const inside = targets
  .filter((target) => !posix.basename(target).startsWith('f'))
  .flatMap((target) => ['key', 'theirs', 'sub/theirs', 'sub'].map((name) => `${target}/${name}`))

/** Locks and first records of targets. */
export const own = targets.flatMap((target) => [
  `${ownPrefix(target)}.1`,
  `${ownPrefix(target)}.2`,
  `${ownPrefix(target)}.lock`,
])

export const movable = [...directories, ...targets, ...bystanders]

/** Out of the way: other places for a target's old content. */
const asides = ['b/moved', 'o/b/moved']

/** The names of a target and of its old content, below any directory: a rename of a parent takes them along. */
export const contentNames = new Set(
  [...targets, ...targets.map((target) => `${target}.bak`), ...asides, 'b/moved-meanwhile'].map((path) =>
    posix.basename(path),
  ),
)

/** The goals of a move or copy: another place of its own kind, or out of the way. */
export function destinations(from: string): readonly string[] {
  const beside = [`${from}.bak`, ...asides]
  if (inside.includes(from))
    return [...inside.filter((path) => posix.basename(path) === posix.basename(from)), ...beside]
  if (own.includes(from)) return [...own.filter((path) => posix.basename(path) === posix.basename(from)), ...beside]
  if (directories.includes(from)) return [...directories, ...beside]
  if (bystanders.includes(from)) return [...inside, 'b/moved']
  const last = posix.basename(from)[0] ?? ''
  return [...targets.filter((path) => posix.basename(path).startsWith(last)), ...beside]
}
