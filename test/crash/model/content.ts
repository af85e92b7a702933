import { takeOver } from '../../../src/durable/adopt/adoption.js'
import type {
  DirectoryRequest,
  FileContent,
  PublicationOptions,
  ReplaceDirectoryOptions,
} from '../../../src/durable/types.js'
import type { Inode } from './inode.js'
import { type ModelDisk, rootInode } from './model-disk.js'

/** What a target may be asked to hold. */
export interface Content {
  /** What messages call it. */
  readonly name: string
  readonly request: ReplaceDirectoryOptions
  /** SELinux labels that its entries must have; '' where nothing says otherwise. */
  readonly labels?: Readonly<Record<string, string>>
  /** Attributes that its entries must have, with the mode that stat(2) gives beside them. */
  readonly extended?: Readonly<Record<string, { readonly mode: number; readonly extended: string }>>
}

/** A target, and how it is published. */
export interface Target {
  readonly path: string
  readonly form: 'exchange' | 'symlink' | 'file'
  /** Targets of one family share their lock and the names of their staging. */
  readonly family?: string
  /** May a publication replace foreign content? Where not, a lost record makes our own content foreign. */
  readonly adopt?: boolean
  /** A publication takes foreign content over once the seven checks have passed, and keeps it until the next one. */
  readonly takesOver?: true
  /** Old content stays until no process uses it. */
  readonly retire?: 'whenUnused'
  /** How many earlier contents stay. */
  readonly history?: number
}

/** What a reader finds: the content as one text, and for a symlink target the names that lead to it. */
export interface View {
  readonly content: string
  readonly links: ReadonlySet<string>
}

/** The view of a target that is not there. */
export const missing = 'missing'

const nothing: View = { content: missing, links: new Set() }

/** The visible content of the target, read from the model itself and not by the code under test. */
export function viewOf(disk: ModelDisk, { path, form }: Target): View {
  const target = find(disk, path)
  if (target === undefined) return nothing
  if (form === 'file') return { content: textOf(disk, target), links: new Set() }
  if (form === 'exchange' || target.type !== 'directory') {
    return { content: textOf(disk, target), links: new Set() }
  }
  const data = disk.child(target.number, '..data')
  const generation = data?.type === 'symlink' ? disk.child(target.number, data.now.data) : undefined
  const links = new Set<string>()
  for (const [name, number] of target.now.entries) {
    const { type, now } = disk.inode(number)
    if (type === 'symlink' && now.data === `..data/${name}`) links.add(name)
  }
  const content = generation ? textOf(disk, generation) : missing
  return { content, links }
}

export function find(disk: ModelDisk, path: string): Inode | undefined {
  let inode: Inode | undefined = disk.inode(rootInode)
  for (const part of path.split('/')) {
    if (part === '') continue
    inode = inode && disk.child(inode.number, part)
  }
  return inode
}

/** Inodes are immutable, and most of a disk is as it was before a power cut. */
const texts = new WeakMap<Inode, string>()

/** The whole of an inode and of its entries, as one text: equal texts are equal trees. */
export function textOf(disk: ModelDisk, inode: Inode): string {
  const known = texts.get(inode)
  if (known !== undefined) return known
  const { type, now } = inode
  const { mode, uid, gid, label, extended } = now.attributes
  const head = `${type[0]} ${mode.toString(8)} ${uid}:${gid}${label && ` ${label}`}${extended && ` ${extended}`}`
  if (type !== 'directory') {
    const text = `${head} <${now.data}>`
    texts.set(inode, text)
    return text
  }
  const children = sorted(now.entries).map(([name, number]) => `${name}=${textOf(disk, disk.inode(number))}`)
  return `${head} {${children.join(',')}}`
}

const states = new WeakMap<Inode, string>()

function stateOf(inode: Inode): string {
  let text = states.get(inode)
  if (text === undefined) {
    const said = (_: string, value: unknown): unknown => (value instanceof Map ? [...value] : value)
    states.set(inode, (text = JSON.stringify(inode, said)))
  }
  return text
}

/**
 * A disk as one text: what a process finds on it, in this boot, and what a power cut may leave. Of equal texts the same calls come to the
 * same end, but for the names and numbers that are drawn next.
 */
export function wholeOf(disk: ModelDisk): string {
  const met = new Set<number>()
  const texts = [`boot ${disk.boot}, ${disk.aborted ? 'aborted' : 'alive'}, used by ${disk.user ?? 'nobody'}`]
  const waiting = [rootInode]
  for (let number = waiting.pop(); number !== undefined; number = waiting.pop()) {
    if (met.has(number)) continue
    met.add(number)
    const inode = disk.inode(number)
    texts.push(stateOf(inode))
    waiting.push(...inode.now.entries.values())
  }
  return texts.join('\n')
}

const inOrder = new WeakMap<Inode['now']['entries'], readonly (readonly [string, number])[]>()

/** By name. */
function sorted(entries: Inode['now']['entries']): readonly (readonly [string, number])[] {
  let order = inOrder.get(entries)
  if (order === undefined) inOrder.set(entries, (order = [...entries].sort(([a], [b]) => (a < b ? -1 : 1))))
  return order
}

/** Whether any entry of the disk is this, under any name. */
export function holds(disk: ModelDisk, text: string): boolean {
  const below = (inode: Inode): boolean =>
    textOf(disk, inode) === text || [...inode.now.entries.values()].some((number) => below(disk.inode(number)))
  return below(disk.inode(rootInode))
}

/** Contents of this suite are all in memory: no call of theirs is the model's. */
function inMemory(content: FileContent | undefined): string {
  if (typeof content === 'string' || content instanceof Uint8Array) return content.toString()
  throw new Error('content that is read while it is published has no place in the model')
}

/** What the view of a target is once this content is published: made from the request alone. */
export function expectedView(content: Content, form: Target['form']): View {
  const { files, mode = 0o755, fileMode = 0o600, owner = { uid: 0, gid: 0 } } = content.request
  const ids = `${owner.uid}:${owner.gid}`
  const head = (type: string, mode: number, path: string): string => {
    const label = content.labels?.[path] ?? ''
    const { mode: shown, extended } = content.extended?.[path] ?? { mode, extended: '' }
    return `${type} ${shown.toString(8)} ${ids}${label && ` ${label}`}${extended && ` ${extended}`}`
  }
  const fileText = (path: string): string => {
    const file = files[path]
    if (typeof file !== 'object' || !('content' in file)) {
      return `${head('f', fileMode, path)} <${inMemory(file)}>`
    }
    return `${head('f', file.mode ?? fileMode, path)} <${inMemory(file.content)}>`
  }
  if (form === 'file') return { content: fileText('file'), links: new Set() }
  const directoryText = (path: string): string => {
    const prefix = path === '' ? '' : `${path}/`
    const below = Object.keys(files).filter((file) => file.startsWith(prefix))
    const names = [...new Set(below.map((file) => file.slice(prefix.length).split('/', 1)[0] ?? ''))].sort()
    const children = names.map((name) => {
      const text = prefix + name in files ? fileText(prefix + name) : directoryText(prefix + name)
      return `${name}=${text}`
    })
    return `${head('d', mode, path)} {${children.join(',')}}`
  }
  const links = form === 'symlink' ? Object.keys(files).map((file) => file.split('/', 1)[0] ?? '') : []
  return { content: directoryText(''), links: new Set(links) }
}

/** The request that publishes this content there. */
export function requestFor(target: Target, content: Content): DirectoryRequest & PublicationOptions {
  const publish = target.form === 'symlink' ? 'symlink' : 'exchange'
  const foreign = target.adopt || target.takesOver ? 'always' : 'same-names'
  return {
    ...content.request,
    target: target.path,
    publish,
    foreign,
    ...(target.family && { family: target.family }),
    ...(target.takesOver && { adopt: takeOver({ replace: true }) }),
    ...(target.retire && { retireTimeout: 3_600_000 }),
    ...(target.history !== undefined && { history: { keep: target.history, maxAge: null } }),
  }
}

/** One text for the whole disk, without regard to inode numbers, but for directories with two names; `leaf` says what stands for a file. */
export function canonical(disk: ModelDisk, leaf: (inode: Inode) => string = (inode) => textOf(disk, inode)): string {
  const seen = new Map<number, number>()
  const walk = (inode: Inode): string => {
    if (inode.type !== 'directory') return leaf(inode)
    const again = seen.get(inode.number)
    if (again !== undefined) return `#${again}`
    seen.set(inode.number, seen.size)
    const { attributes, entries } = inode.now
    const children = sorted(entries).map(([name, number]) => `${name}=${walk(disk.inode(number))}`)
    const { mode, uid, gid, label, extended } = attributes
    return `d ${mode} ${uid} ${gid} ${label} ${extended} {${children.join()}}`
  }
  return walk(disk.inode(rootInode))
}
