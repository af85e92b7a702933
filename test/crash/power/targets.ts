/**
 * What the suite publishes. Every byte of every file follows from the target, the file's name and the generation, so that a
 * tree on a disk is one generation or it is broken: nothing in between can be taken for either.
 */
import { createHash } from 'node:crypto'
import { contentAfter, type Life } from './lives.js'

/** `pod`: the live manifest of a static pod, see static-pod.ts. */
type TargetKind = 'directory' | 'symlink' | 'file' | 'pod'

export interface Target {
  /** Relative to the mount point. */
  readonly path: string
  readonly kind: TargetKind
  /** `many`: files added, changed, removed, nested, empty and large. `few`: a certificate and its key. `secret`: an object's. */
  readonly content: 'many' | 'few' | 'secret'
  readonly owner?: { readonly uid: number; readonly gid: number }
  /** Path of another that this one changes places with: the two have the same contents, and never the same generation. */
  readonly twin?: string
  /** Its generations are steps of this. */
  readonly life?: Life
}

export interface WantedFile {
  readonly content: Buffer
  readonly mode: number
}

export const directoryMode = 0o755
/** Name that a single file has in the maps of this module. */
export const wholeFile = ''

/** What the target holds in a generation; none where it does not exist. */
export function filesOf(target: Target, generation: number): Map<string, WantedFile> {
  return contentOf(target, target.life === undefined ? generation : contentAfter(target.life, generation))
}

/** A content by its number; 0 is a target that does not exist. */
export function contentOf(target: Target, generation: number): Map<string, WantedFile> {
  const whose = target.twin === undefined ? target.path : [target.path, target.twin].sort().join()
  const file = (name: string, bytes: number, mode = 0o600, of: number | string = generation): [string, WantedFile] => [
    name,
    { content: fill(`${whose} ${name} ${of}`, bytes), mode },
  ]
  if (generation === 0) return new Map()
  if (target.kind === 'pod') return new Map([[wholeFile, { content: podText(generation), mode: 0o600 }]])
  if (target.kind === 'file') return new Map([file(wholeFile, 3000 + 500 * (generation % 3))])
  const pair = [file('tls.crt', 1700), file('tls.key', 300)]
  if (target.content === 'few') return new Map(pair)
  if (target.content === 'secret') {
    return new Map([...pair, file('ca.crt', 1200, 0o600, 'always'), file(`of-${generation}.pem`, 9000)])
  }
  return new Map([
    ...pair,
    file('ca.crt', 1200, 0o644, 'always'),
    file(`added-${generation}.pem`, 700),
    file('nested/one/deep.pem', 5000),
    file(`nested/for-${generation % 2}/file.pem`, 100),
    file('empty', 0),
    file('large.bin', 40_000),
  ])
}

function podText(revision: number): Buffer {
  const metadata = { name: 'web', labels: { revision: String(revision) } }
  const spec = { containers: [{ name: 'web', image: 'web:1' }] }
  return Buffer.from(`${JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata, spec })}\n`)
}

function fill(seed: string, bytes: number): Buffer {
  return Buffer.alloc(bytes, createHash('sha256').update(seed).digest('hex'))
}
