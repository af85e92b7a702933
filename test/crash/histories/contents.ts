/** What histories publish: every file says whose it is, so that a mixture is seen. */
import { join } from 'node:path'
import type { FileSystem } from '../../../src/durable/file-system.js'
import type { TargetPublication } from '../../../src/durable/publish/publication.js'
import { directoryPublication, filePublication } from '../../../src/durable/publish/replace.js'
import type { PublicationOptions } from '../../../src/durable/types.js'
import { faultOfLinks } from '../judge/contents.js'
import { type Entry, textOf } from '../judge/directory.js'
import type { Random } from '../../random.js'
import type { Content, Publication } from './vocabulary.js'
import { below, nameOf, type Seen, type Snapshot, resolved } from './snapshot.js'

/** The form of a target follows from its last letter, so that no shrunk history asks for another form of the same path. */
type Kind = 'directory' | 'links' | 'file'

export function kindOf(target: string): Kind {
  const last = nameOf(target)
  if (last.startsWith('f')) return 'file'
  return last.startsWith('l') ? 'links' : 'directory'
}

interface Form {
  readonly mode: number
  readonly fileMode: number
  readonly owner: { readonly uid: number; readonly gid: number }
}

const root = { uid: 0, gid: 0 }
/** Usual modes, and those with a bit of their own: setgid, sticky, nothing for others. */
const forms = [
  { mode: 0o755, fileMode: 0o600, owner: root },
  { mode: 0o2755, fileMode: 0o640, owner: root },
  { mode: 0o1777, fileMode: 0o644, owner: root },
  { mode: 0o700, fileMode: 0o400, owner: { uid: 7, gid: 8 } },
] as const satisfies readonly Form[]

export const contentCount = forms.length

/** Earlier contents that stay beside a target of this kind. */
export const generationsKept = 2

export function keepsHistory(target: string): boolean {
  return nameOf(target).startsWith('h')
}

/** What the next run has to publish: the same, or something else. */
export function nextContent(random: Random, last: Content): Content {
  return random.below(2) === 0 ? last : random.below(contentCount)
}

function formOf(content: number): Form {
  return forms[content % forms.length] ?? forms[0]
}

/** The second is the same in all contents; the last is longer than a sector. */
function filesOf(content: number): Record<string, string> {
  return {
    key: `key ${content}\n`,
    'sub/same': 'the same in all of them\n',
    [`only-${content}`]: `certificate ${content} `.repeat(40),
  }
}

/** The files of a publication of it, as another program would put them there: directories before their entries. */
export function recalled(content: number): readonly { name: string; text?: string; mode: number }[] {
  const { mode, fileMode } = formOf(content)
  const files = Object.entries(filesOf(content)).map(([name, text]) => ({ name, text, mode: fileMode }))
  return [{ name: '', mode }, { name: 'sub', mode }, ...files]
}

export function publicationOf(
  fs: FileSystem,
  base: string,
  target: string,
  content: number,
  options: PublicationOptions,
): TargetPublication {
  const { mode, fileMode, owner } = formOf(content)
  const path = join(base, target)
  if (kindOf(target) === 'file') {
    return filePublication(fs, path, `file ${content}\n`, { mode: fileMode, owner, ...options })
  }
  const publish = kindOf(target) === 'links' ? 'symlink' : 'exchange'
  const history = keepsHistory(target) ? { keep: generationsKept, maxAge: null } : undefined
  // The content of a rollback is published again.
  const form = { mode, fileMode, owner, publish, held: 'release', ...(history && { history }) } as const
  return directoryPublication(fs, { target: path, files: filesOf(content), ...form, ...options })
}

const texts = new Map<string, string>()

/** What a target may hold once this content is published, each as one text. */
export function expectedTexts(target: string, content: Content): readonly string[] {
  if (content === 'none') return ['']
  if (typeof content === 'number') return [expectedText(target, content)]
  const all = Array.from({ length: contentCount }, (_, earlier) => expectedText(target, earlier))
  // While it moves, the old path is given what the new one holds.
  return content === 'moved' ? [...all, ''] : all
}

/** What this call makes of one of its targets. */
export function contentFor({ content, targets }: Publication, target: string): Content {
  return content === 'moved' && target === targets[0] ? 'earlier' : content
}

/** The content that this is the text of. */
export function contentOf(target: string, text: string): Content | undefined {
  if (text === '') return 'none'
  const found = expectedTexts(target, 'earlier').indexOf(text)
  return found === -1 ? undefined : found
}

function expectedText(target: string, content: number): string {
  const key = `${kindOf(target)} ${content}`
  let text = texts.get(key)
  if (text === undefined) texts.set(key, (text = textOf(expected(target, content))))
  return text
}

function expected(target: string, content: number): Map<string, Entry> {
  const { mode, fileMode, owner } = formOf(content)
  const file = (data: string): Entry => ({ type: 'file', mode: fileMode, ...owner, data })
  if (kindOf(target) === 'file') return new Map([['', file(`file ${content}\n`)]])
  const directory = { type: 'directory', mode, ...owner, data: '' } as const
  const tree = new Map<string, Entry>([
    ['', directory],
    ['sub', directory],
  ])
  for (const [path, data] of Object.entries(filesOf(content))) tree.set(path, file(data))
  return tree
}

/** The visible content of a target, as one text; '' where there is none. */
export function visibleText(snapshot: Snapshot, target: string): string {
  return textOf(visibleTree(snapshot, target))
}

/** The visible content of a target, by relative path: behind `..data` in the form of links. */
export function visibleTree(snapshot: Snapshot, target: string): Map<string, Seen> {
  const path = resolved(snapshot, target)
  if (path === undefined) return new Map()
  if (kindOf(target) !== 'links') return below(snapshot, path)
  const data = snapshot.get(`${path}/..data`)
  if (data?.type === 'symlink') return below(snapshot, `${path}/${data.data}`)
  // No reader sees the entries beside `..data`.
  return new Map([...below(snapshot, path)].filter(([name]) => !name.startsWith('..')))
}

/** The fault of the links of a target in that form, after a successful call. */
export function linkFault(snapshot: Snapshot, target: string, content: Content): string | undefined {
  if (kindOf(target) !== 'links' || typeof content === 'string') return undefined
  const path = resolved(snapshot, target) ?? target
  const own = new Set(['key', 'sub', `only-${content}`])
  const links = [...own].filter((name) => snapshot.get(`${path}/${name}`)?.data === `..data/${name}`)
  return faultOfLinks(target, new Set(links), own, [])
}

/** Whether any file of it can only come from this content. */
export function hasPartOf(text: string, content: Content): boolean {
  return new RegExp(`<(key|file) ${content}\\n|<certificate ${content} `).test(text)
}
