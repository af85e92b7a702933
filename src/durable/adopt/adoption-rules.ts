import { nameOf } from '../../relative-path.js'
import { listed } from '../../message-text.js'
import type { AdoptedFiles, Adopting, AdoptionCheck, AdoptionResult } from '../types.js'
import { dataLink, inTree, readWhole, type Tree, type TreeEntry } from '../path/index.js'
import type { Attributes, Descriptor, FileSystem } from '../file-system.js'
import { refuseTargetBelow } from '../target/index.js'
import type { AdoptionScene, DirectoryPlan } from '../publish/index.js'
import {
  exchangeProblem,
  immovableProblem,
  parentEntry,
  usageBy,
  usageOf,
  type Writer,
  writerOf,
} from '../look/index.js'
import { relationOf } from '../record/index.js'

/** What the checks look at. A publication holds the lock; `holdfast adopt` may find that another process holds it. */
export interface Scene extends AdoptionScene {
  readonly adopt: Adopting
}

/** A target that a check has opened as a directory. */
export interface OpenedTarget {
  readonly opened: Descriptor
  readonly tree: Tree
}

/** What each check may ask, in its turn. */
export interface AdoptionLook extends Scene {
  /** Of the entry at the path; undefined where there is none. */
  readonly attributes: Attributes | undefined
  /** @throws DurableWriteError for a target that no publication can replace; the system's errors */
  readonly target: () => Promise<OpenedTarget>
}

export type RuleVerdict = Omit<AdoptionResult, 'check' | 'terminal'>

const passed = (message: string): RuleVerdict => ({ verdict: 'passed', message, advice: null })
/** Looked at again by itself. */
export const pending = (message: string, advice: string): RuleVerdict => ({ verdict: 'pending', message, advice })
/** Fails until a person acts. */
export const refused = (message: string, advice: string): RuleVerdict => ({ verdict: 'refused', message, advice })

export interface AdoptionRule {
  /** The least that this check needs at the path: a `directory` is a replaceable one. */
  readonly needs: 'nothing' | 'something' | 'directory'
  readonly check: (look: AdoptionLook) => Promise<RuleVerdict>
}

/** The seven checks, in their order. None of them changes anything. */
export const adoptionRules = {
  exists: { needs: 'nothing', check: checkExists },
  noOtherWriter: { needs: 'something', check: checkWriters },
  realDirectory: { needs: 'something', check: checkDirectory },
  fileSystem: { needs: 'something', check: checkFileSystem },
  safeOwner: { needs: 'directory', check: checkOwners },
  space: { needs: 'directory', check: checkSpace },
  content: { needs: 'directory', check: checkContent },
} as const satisfies Record<AdoptionCheck, AdoptionRule>

async function checkExists({ path, attributes }: AdoptionLook): Promise<RuleVerdict> {
  if (attributes !== undefined) return Promise.resolve(passed(`${path} exists`))
  return Promise.resolve(
    pending(`${path} does not exist`, 'there is nothing to adopt: holdfast makes it with its first publication'),
  )
}

/** By library-go's order, DESTINATION/staging/WRITER/KIND/NAME becomes DESTINATION/KIND/NAME; see pkg/operator/staticpod. */
const writersOfLibraryGo = ['cert-sync', 'installer']

/** What library-go's WriteFileAtomic writes beside a file, before it renames it. */
const temporary = /\.tmp-?[0-9]+$/

async function checkWriters(look: AdoptionLook): Promise<RuleVerdict> {
  const { fs, path, site, name, busy, attributes } = look
  if (busy) return pending(`another process of holdfast has the lock of ${path}`, 'wait until it is done')
  const [destination, kind] = splitAt(splitAt(site.realPath)[0])
  for (const writer of writersOfLibraryGo) {
    const staging = `${destination}/staging/${writer}/${kind}/${name}`
    if ((await fs.lookPath(staging)) === undefined) continue
    const advice = `stop it; if ${writer} runs no more, remove ${destination}/staging/${writer}`
    return pending(`library-go's ${writer} stages new content in ${staging}`, advice)
  }
  if (attributes?.type !== 'directory') return passed('no other writer is seen')
  const { writer, unseen } = await fs.writersIn(site.parent.directory, name)
  if (writer !== undefined) return pending(writer, 'wait until it has closed its files, or stop it')
  const inside = await treeInside(look)
  // A target below is a target, however it comes to be looked at.
  await refuseTargetBelow({ fs, path, parent: site.parent.directory, name }, inside)
  const staged = inside?.entries.map((entry) => entry.path).find((entry) => temporary.test(nameOf(entry)))
  if (staged !== undefined) {
    return pending(`somebody is writing ${staged} in it`, 'wait until it is renamed, or remove it if nobody does that')
  }
  return passed(`no other writer is seen${unseen === undefined ? '' : `, but not everybody: ${unseen}`}`)
}

function splitAt(path: string): [before: string, last: string] {
  const cut = path.lastIndexOf('/')
  return [path.slice(0, cut), path.slice(cut + 1)]
}

/** A directory that cannot be replaced is the next check's matter. */
async function treeInside({ target }: AdoptionLook): Promise<Tree | undefined> {
  return (await target().catch(() => undefined))?.tree
}

async function checkDirectory({ target }: AdoptionLook): Promise<RuleVerdict> {
  const { tree } = await target()
  if (tree.entries.some(({ path, type }) => path === dataLink && type === 'symlink'))
    return refused(
      `it holds a link ${dataLink}, which its readers may go through, as kubelet's volumes have`,
      'stop whoever makes it, and remove the directory',
    )
  return passed("a directory on its parent's mount")
}

async function checkFileSystem({ fs, path, site, names, target }: AdoptionLook): Promise<RuleVerdict> {
  const { directory: parent } = site.parent
  const opened = (await target().catch(() => undefined))?.opened
  const fixed = opened === undefined ? undefined : await immovableProblem(fs, path, opened, 'exchange')
  const problem = fixed ?? (await exchangeProblem(fs, path, parent, names))
  if (problem) return (problem.lasting ? refused : pending)(problem.problem, problem.advice)
  const { type, proven } = await fs.mount(parent)
  return passed(`${type} exchanges and syncs${proven ? '' : '; durability is not proven here'}`)
}

/** Who may write there, now or later, apart from root, this user and the owner that is configured, or kept. */
async function checkOwners({ fs, path, plan, site, target, keepsOwners }: AdoptionLook): Promise<RuleVerdict> {
  const { tree } = await target()
  const owner = keepsOwners ? tree.entries[0] : plan.owner
  const above = path.slice(0, path.lastIndexOf('/')) || '/'
  const parent = await parentEntry(fs, site.parent.directory, site.parent.attributes)
  const inside = tree.entries.find((entry) => entry.type !== 'symlink' && writerIn(entry))
  const writer = writerOf(above, parent, { self: fs.user, owner, holds: true }) ?? (inside && writerIn(inside))
  if (writer) return refused(writer.problem, writer.advice)
  const open = keepsOwners ? tree.entries.filter(({ path, mode }) => path.endsWith('.key') && (mode & 0o004) !== 0) : []
  if (open.length === 0) return passed('nobody else may write to it')
  const keys = open.map(({ path }) => path)
  return passed(`nobody else may write to it; everybody may read ${listed(keys, 3)}, which attributes: keep leaves so`)

  function writerIn(entry: TreeEntry): Writer | undefined {
    return writerOf(entry.path === '' ? path : `${path}/${entry.path}`, entry, {
      self: fs.user,
      owner,
      holds: false,
    })
  }
}

/** The new content, and a copy of the old. */
async function checkSpace({ fs, site, plan, target }: AdoptionLook): Promise<RuleVerdict> {
  const free = await fs.free(site.parent.directory)
  const { blockSize } = free
  const old = await usageOf(fs, (await target()).opened, blockSize)
  const sizes: number[] = []
  for (const { content } of plan.planned)
    if (content) sizes.push(content instanceof Uint8Array ? content.length : await content.size())
  const coming = usageBy(sizes, plan.planned.length - sizes.length, blockSize)
  const bytes = old.bytes + coming.bytes
  const inodes = old.inodes + coming.inodes
  const advice = 'free up space on this file system'
  if (free.bytes < bytes) return pending(`${free.bytes} bytes are free, ${bytes} are needed`, advice)
  if (free.inodes !== undefined && free.inodes < inodes)
    return pending(`${free.inodes} inodes are free, ${inodes} are needed`, advice)
  return passed(`${bytes} bytes are needed, ${free.bytes} are free`)
}

async function checkContent(look: AdoptionLook): Promise<RuleVerdict> {
  const { adopt, desired, fs, plan, target } = look
  const { opened, tree } = await target()
  const strange = tree.entries.filter(({ type }) => type === 'other').map(({ path }) => path)
  if (strange.length > 0)
    return refused(`it holds what is no file, directory or link (${listed(strange, 3)})`, 'move it away')
  const relation = relationOf(tree, desired)
  if (relation.more.length > 0 && !adopt.replace) {
    const advice =
      'set adopt: replace to take it over without them (they stay in the content 0 of its history), or move them away'
    return refused(`it holds what the new content does not have (${listed(relation.more, 3)})`, advice)
  }
  const { keyPairs } = adopt
  const coming = await keyPairs?.(contentsOf(plan))
  if (coming !== undefined) return refused(`the new content: ${coming}`, 'put the right pair into its objects')
  const there = adopt.replace ? undefined : await keyPairs?.(contentsOf({ fs, opened, tree }))
  if (there !== undefined) {
    return pending(`${there}: somebody may be between the two files`, 'put the right pair there, or set adopt: replace')
  }
  return passed(relation.text)
}

/** Bytes. A larger file is neither a key nor a certificate, and the check does not read it into memory: any program can have put it there. */
const largestKey = 4 * 1024 * 1024

/**
 * The files of a plan that are in memory, or those of an open directory that can be a key.
 * @internal
 */
export function contentsOf(
  from: Pick<DirectoryPlan, 'planned'> | { readonly fs: FileSystem; readonly opened: Descriptor; readonly tree: Tree },
): AdoptedFiles {
  if ('planned' in from) {
    const inMemory = new Map(
      from.planned.flatMap(({ path, content }) => (content instanceof Uint8Array ? [[path, content]] : [])),
    )
    return { paths: [...inMemory.keys()], read: (path) => Promise.resolve(inMemory.get(path) ?? new Uint8Array()) }
  }
  const { fs, opened, tree } = from
  return {
    paths: tree.entries.filter(({ type, size = 0 }) => type === 'file' && size <= largestKey).map(({ path }) => path),
    read: (path) =>
      inTree(fs, opened, (directories) =>
        directories.useFile(path, async (file) => readWhole(fs, file, (await fs.attributes(file)).size)),
      ),
  }
}
