/** A directory that moves, for the tests of relocation.ts. */
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { readPublication, replaceDirectory } from '../../src/durable/index.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { publish, resultsOf } from '../../src/durable/publish/publish.js'
import { relocate, type RelocationProgress } from '../../src/durable/move/relocation.js'
import { directoryPublication } from '../../src/durable/publish/replace.js'
import type { DirectoryRequest, PublicationOptions } from '../../src/durable/types.js'
import { scratch } from './scratch.js'
import { isKind } from '../crash/judge/names.js'

/** A file system whose clock and users the test sets. */
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
  return readdirSync(directory).find(isKind('staging', 'foreign')) ?? ''
}

export const keep = 60_000

/** An old path with content, and an unpublished new one, in separate directories. */
export async function story(
  t: Test,
  old: Omit<DirectoryRequest, 'target'> & PublicationOptions = { files: { a: '1' } },
) {
  const root = scratch(t)
  for (const name of ['was', 'is']) mkdirSync(join(root, name))
  const [from, to] = [join(root, 'was/certs'), join(root, 'is/tls')]
  const fs = new Observed()
  await replaceDirectory(from, old)
  const publishNew = async (files: DirectoryRequest['files'], more: PublicationOptions = {}) =>
    resultsOf(await publish([directoryPublication(fs, { target: to, files, movedFrom: from, ...more })]))[0]
  const move = (): Promise<RelocationProgress> => relocate(fs, to, { from, keep })
  const state = async (): Promise<string | undefined> => (await readPublication(to))?.relocation?.state
  return { root, from, to, fs, publishNew, move, state }
}
