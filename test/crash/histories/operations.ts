/**
 * What can happen to the names around a target: the vocabulary of histories. One table says of each operation how it is drawn, which
 * paths it changes, and how it is done on the model disk and on a real file system. What cannot be done (the path is gone, the name is
 * taken) changes nothing, so that any part of a history is a history: it can be shrunk by leaving out what does not matter.
 */
import { posix } from 'node:path'
import { kindOf, recalled } from './contents.js'
import type { ModelDisk } from '../model/model-disk.js'
import * as model from './on-model.js'
import * as real from './on-real.js'
import type { Random } from '../../random.js'
import type { Kind, Of, OfOne, OfTwo, Operation, World } from './vocabulary.js'
import { bystanders, destinations, directories, inside, movable, otherFileSystem, own, targets } from './places.js'

export type * from './vocabulary.js'

interface Row<Name extends Kind> {
  /** How often it is drawn, beside the others; 0: it is put in by generate.ts. */
  readonly weight: number
  /** undefined where the world has nothing for it. */
  readonly draw: (random: Random, world: World) => Of<Name> | undefined
  /** Paths that it changes. */
  readonly touches: (operation: Of<Name>) => readonly string[]
  /** undefined: the ground does it itself. Throws a ModelError, or what the system answers, where it cannot be done. */
  readonly act: (<Ground>(by: Hands<Ground>, ground: Ground, operation: Of<Name>) => void) | undefined
}

const modes = [0o700, 0o755, 0o2755, 0o1777, 0o777, 0o750, 0o600, 0o644]

function existing(random: Random, world: World, paths: readonly string[]): string | undefined {
  const there = paths.filter((path) => world.exists(path))
  return there.length === 0 ? undefined : random.pick(there)
}

/** A name in a directory that exists; mostly a free one. */
function destination(random: Random, world: World, from: string): string | undefined {
  const fit = destinations(from).filter((path) => path !== from && world.isDirectory(posix.dirname(path)))
  const free = fit.filter((path) => !world.exists(path))
  const pool = free.length > 0 && random.below(4) > 0 ? free : fit
  return pool.length === 0 ? undefined : random.pick(pool)
}

function pair(random: Random, world: World, paths: readonly string[]): { from: string; to: string } | undefined {
  const from = existing(random, world, paths)
  const to = from === undefined ? undefined : destination(random, world, from)
  return from === undefined || to === undefined ? undefined : { from, to }
}

/** A target, or a directory above it, comes to where another target would be: a moved, copied or restored parent. */
function relocation(random: Random, world: World): { from: string; to: string } | undefined {
  const there = targets.filter((target) => world.exists(target))
  if (there.length === 0) return undefined
  const target = random.pick(there)
  const others = targets.filter((other) => other !== target && posix.basename(other) === posix.basename(target))
  const found = others
    .flatMap((other) => prefixes(target, other))
    .filter(({ to }) => !world.exists(to) && world.isDirectory(posix.dirname(to)))
  return found.length === 0 ? undefined : random.pick(found)
}

/** Two targets, and the pairs of directories above them with the same names below: `a/p/t` and `c/p/t`, `a/p` and `c/p`, `a` and `c`. */
function prefixes(from: string, to: string): { from: string; to: string }[] {
  const [above, other] = [posix.dirname(from), posix.dirname(to)]
  const isSame = posix.basename(from) === posix.basename(to)
  return [{ from, to }, ...(isSame && above !== other && above !== '.' && other !== '.' ? prefixes(above, other) : [])]
}

const ends = ({ from, to }: OfTwo<string>): string[] => [from, to]
const path = (operation: OfOne<string>): string[] => [operation.path]

/** What other programs do, on a model disk or below a directory. */
interface Hands<Ground> {
  readonly rename: (ground: Ground, from: string, to: string) => void
  readonly copy: (ground: Ground, from: string, to: string) => void
  readonly link: (ground: Ground, from: string, to: string) => void
  readonly symlink: (ground: Ground, from: string, to: string) => void
  readonly remove: (ground: Ground, path: string) => void
  readonly mkdir: (ground: Ground, path: string) => void
  readonly write: (ground: Ground, path: string, text: string) => void
  readonly chmod: (ground: Ground, path: string, mode: number) => void
  readonly chown: (ground: Ground, path: string) => void
  readonly setAcl: (ground: Ground, path: string, inherited: boolean) => void
  readonly mount: (ground: Ground, from: string, to: string) => void
  readonly unmount: (ground: Ground, path: string) => void
}

function recall<Ground>(by: Hands<Ground>, ground: Ground, { path: target, content }: Of<'recall'>): void {
  by.remove(ground, target)
  for (const { name, text, mode } of recalled(content)) {
    const at = posix.join(target, name)
    if (text === undefined) by.mkdir(ground, at)
    else by.write(ground, at, text)
    by.chmod(ground, at, mode)
  }
}

export const operations = {
  rename: {
    weight: 10,
    draw(random, world) {
      const isFar = random.below(2) === 0
      const names =
        (isFar && relocation(random, world)) || pair(random, world, random.below(4) === 0 ? inside : movable)
      return names && { do: 'rename', ...names }
    },
    touches: ends,
    act: (by, ground, { from, to }) => by.rename(ground, from, to),
  },
  copy: {
    weight: 6,
    draw(random, world) {
      const isFar = random.below(2) === 0
      const near = random.below(4) === 0 ? [...inside, ...own] : movable
      const names = (isFar && relocation(random, world)) || pair(random, world, near)
      return names && { do: 'copy', ...names }
    },
    touches: ({ to }) => [to],
    act: (by, ground, { from, to }) => by.copy(ground, from, to),
  },
  restore: {
    weight: 3,
    draw(random, world) {
      const target = existing(random, world, targets)
      if (target === undefined) return undefined
      const parent = posix.dirname(target)
      return { do: 'restore', path: random.below(3) > 0 || parent === 'o' ? target : parent }
    },
    touches: path,
    act(by, ground, operation) {
      const aside = `${operation.path}.restored`
      by.copy(ground, operation.path, aside)
      by.remove(ground, operation.path)
      by.rename(ground, aside, operation.path)
    },
  },
  recall: {
    weight: 4,
    draw(random, world) {
      const target = existing(
        random,
        world,
        targets.filter((one) => kindOf(one) === 'directory' && world.isDirectory(one)),
      )
      return target === undefined ? undefined : { do: 'recall', path: target, content: random.below(2) }
    },
    touches: path,
    act: recall,
  },
  link: {
    weight: 2,
    draw(random, world) {
      const names = pair(random, world, [...inside, ...own])
      return names && { do: 'link', ...names }
    },
    touches: ({ to }) => [to],
    act: (by, ground, { from, to }) => by.link(ground, from, to),
  },
  symlink: {
    weight: 2,
    draw(random, world) {
      const from = existing(random, world, directories)
      const to = from === undefined ? undefined : destination(random, world, from)
      return from === undefined || to === undefined ? undefined : { do: 'symlink', from, to }
    },
    touches: ({ to }) => [to],
    act: (by, ground, { from, to }) => by.symlink(ground, from, to),
  },
  remove: {
    weight: 3,
    draw(random, world) {
      const found = existing(random, world, random.below(2) === 0 ? [...inside, ...own] : [...targets, ...movable])
      return found === undefined ? undefined : { do: 'remove', path: found }
    },
    touches: path,
    act: (by, ground, operation) => by.remove(ground, operation.path),
  },
  mkdir: {
    weight: 2,
    draw(random, world) {
      const free = [...directories, ...targets].filter(
        (one) => !world.exists(one) && world.isDirectory(posix.dirname(one)),
      )
      return free.length === 0 ? undefined : { do: 'mkdir', path: random.pick(free) }
    },
    touches: path,
    act: (by, ground, operation) => by.mkdir(ground, operation.path),
  },
  write: {
    weight: 4,
    draw(random, world) {
      const fit = [...inside, ...bystanders, ...targets.filter((target) => !world.isDirectory(target))]
      const writable = fit.filter((one) => world.isDirectory(posix.dirname(one)) && !world.isDirectory(one))
      const text = `written by another program, ${random.below(1000)}\n`
      return writable.length === 0 ? undefined : { do: 'write', path: random.pick(writable), text }
    },
    touches: path,
    act: (by, ground, operation) => by.write(ground, operation.path, operation.text),
  },
  chmod: {
    weight: 3,
    draw(random, world) {
      const found = existing(random, world, [...directories, ...targets, ...inside])
      return found === undefined ? undefined : { do: 'chmod', path: found, mode: random.pick(modes) }
    },
    touches: path,
    act: (by, ground, operation) => by.chmod(ground, operation.path, operation.mode),
  },
  chown: {
    weight: 1,
    draw(random, world) {
      const found = existing(random, world, [...directories, ...targets, ...inside])
      return found === undefined ? undefined : { do: 'chown', path: found }
    },
    touches: path,
    act: (by, ground, operation) => by.chown(ground, operation.path),
  },
  setfacl: {
    weight: 3,
    draw(random, world) {
      const found = existing(random, world, [...directories, ...targets, ...inside])
      if (found === undefined) return undefined
      return { do: 'setfacl', path: found, inherited: world.isDirectory(found) && random.below(2) === 0 }
    },
    touches: path,
    act: (by, ground, operation) => by.setAcl(ground, operation.path, operation.inherited),
  },
  mount: {
    weight: 2,
    draw(random, world) {
      const to = existing(
        random,
        world,
        [...targets, ...inside, ...directories].filter((one) => world.isDirectory(one)),
      )
      const isOther = random.below(2) === 0
      const from = existing(
        random,
        world,
        directories.filter((one) => !isOther || one.startsWith(`${otherFileSystem}/`)),
      )
      return from === undefined || to === undefined ? undefined : { do: 'mount', from, to }
    },
    touches: ({ to }) => [to],
    act: (by, ground, { from, to }) => by.mount(ground, from, to),
  },
  unmount: {
    weight: 1,
    draw(random, world) {
      const found = existing(random, world, [...targets, ...directories])
      return found === undefined ? undefined : { do: 'unmount', path: found }
    },
    touches: path,
    act: (by, ground, operation) => by.unmount(ground, operation.path),
  },
  sync: {
    weight: 1,
    draw: () => ({ do: 'sync' }),
    touches: () => [],
    act: undefined,
  },
  reboot: {
    weight: 1,
    draw: () => ({ do: 'reboot' }),
    touches: () => [],
    act: undefined,
  },
  publish: {
    weight: 0,
    draw: () => undefined,
    touches: (operation) => operation.targets,
    act: undefined,
  },
  killed: {
    weight: 0,
    draw: () => undefined,
    touches: ({ publication }) => publication.targets,
    act: undefined,
  },
} as const satisfies { readonly [Name in Kind]: Row<Name> }

/** The row of an operation, for an operation of any kind. */
export function rowOf(operation: Operation): Row<Kind> {
  return operations[operation.do] as unknown as Row<Kind>
}

/** Throws a ModelError where it cannot be done. */
export const onModel = (disk: ModelDisk, operation: Operation): void => rowOf(operation).act?.(model, disk, operation)

/** Throws what the system answers where it cannot be done. */
export const onReal = (root: string, operation: Operation): void => rowOf(operation).act?.(real, root, operation)

export const kinds = Object.keys(operations) as Kind[]

/** One history in one line, for people; as JSON, it can be played again. */
export function described(operation: Operation): string {
  if (operation.do === 'publish') {
    const { targets: paths, content, careful } = operation
    const during = operation.meanwhile === undefined ? '' : `, meanwhile ${described(operation.meanwhile)}`
    if (content === 'moved') return `move ${paths.toReversed().join(' to ')}${during}`
    if (content === 'earlier') return `roll back ${paths.join(' and ')}${during}`
    if (content === 'none') return `take away what was published at ${paths.join(' and ')}${during}`
    const how = `${careful ? ', carefully' : ''}${operation.adopting ? ', taking over what is there' : ''}`
    return `publish ${content} to ${paths.join(' and ')}${how}${during}`
  }
  if (operation.do === 'killed') return `${described(operation.publication)}, killed before call ${operation.before}`
  const mode = operation.do === 'chmod' ? ` ${operation.mode.toString(8)}` : ''
  const paths = 'from' in operation ? [operation.from, operation.to] : 'path' in operation ? [operation.path] : []
  return [operation.do + mode, ...paths].join(' ')
}
