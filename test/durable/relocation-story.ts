/** A directory that moves, for the tests of relocation.ts. */
import {
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { readPublication, replaceDirectory } from '../../src/durable/index.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { publish, resultsOf } from '../../src/durable/publish/publish.js'
import { relocate, type RelocationProgress } from '../../src/durable/move/relocation.js'
import { directoryPublication } from '../../src/durable/publish/replace.js'
import type { DirectoryRequest, MovedFromForm, PublicationOptions } from '../../src/durable/types.js'
import { scratch } from './scratch.js'

/** A file system with a clock and a user of its own. */
export class Observed extends NodeFileSystem {
  time = 1_800_000_000_000
  user1: string | undefined
  override now(): number {
    return this.time
  }
  override userOf(): Promise<string | undefined> {
    return Promise.resolve(this.user1)
  }
}

export function stagingIn(directory: string): string {
  return readdirSync(directory).find((name) => /^\.holdfast-[0-9a-f]{16}-/.test(name)) ?? ''
}

/** What lies under this name has this inode number, as ext4 gives the number of what was removed to what is made next. */
export class Numbered extends Observed {
  constructor(
    private readonly named: string,
    private readonly inode: bigint,
    override time: number,
  ) {
    super()
  }
  override async look(...args: Parameters<NodeFileSystem['look']>): ReturnType<NodeFileSystem['look']> {
    const found = await super.look(...args)
    return found && args[1] === this.named ? { ...found, inode: this.inode } : found
  }
}

export const keep = 60_000

/** An old path with content, and a new one that is not published yet, in directories of their own. */
export async function story(
  t: Test,
  old: Omit<DirectoryRequest, 'target'> & PublicationOptions = { files: { a: '1' } },
  as: MovedFromForm = 'removed',
) {
  const root = scratch(t)
  for (const name of ['was', 'is']) mkdirSync(join(root, name))
  const [from, to] = [join(root, 'was/certs'), join(root, 'is/tls')]
  const fs = new Observed()
  await replaceDirectory(from, old)
  const publishNew = async (files: DirectoryRequest['files'], more: PublicationOptions = {}) =>
    resultsOf(await publish([directoryPublication(fs, { target: to, files, movedFrom: { from, as }, ...more })]))[0]
  const move = (): Promise<RelocationProgress> => relocate(fs, to, { from, as, keep })
  const state = async (): Promise<string | undefined> => (await readPublication(to))?.relocation?.state
  return { root, from, to, fs, publishNew, move, state }
}

export const typeOf = (path: string): string => (lstatSync(path).isSymbolicLink() ? 'link' : 'directory')

/** A directory that has moved, and left a link. */
export async function moved(t: Test, old?: Omit<DirectoryRequest, 'target'> & PublicationOptions) {
  const scene = await story(t, old, 'link')
  await scene.publishNew({ a: '2' })
  await scene.move()
  scene.fs.time += keep
  t.match(await scene.move(), { state: 'done', as: 'link', entered: 'done' })
  return scene
}

/** What another program may put into a place, with how to recognise it. */
export const others: Readonly<Record<string, readonly [(path: string) => void, (path: string) => unknown, unknown]>> = {
  'a directory': [(path) => cpSync(import.meta.dirname, path, { recursive: true }), typeOf, 'directory'],
  'a link': [(path) => symlinkSync('/theirs', path), (path) => readlinkSync(path), '/theirs'],
  'a file': [(path) => writeFileSync(path, 'theirs'), (path) => readFileSync(path, 'utf8'), 'theirs'],
}
