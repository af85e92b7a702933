/** A target whose record gets lines, and its readers. */
import { hash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { FileSystem } from '../../src/durable/file-system.js'
import { readPublication } from '../../src/durable/look/inspect.js'
import { namesFor } from '../../src/durable/path/names.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { completeHook, recordObjects } from '../../src/durable/record/record-files.js'
import { replaceDirectory } from '../../src/durable/publish/replace.js'
import type { PublicationOptions, RecordedObject } from '../../src/durable/types.js'

export const real = new NodeFileSystem()
export const names = namesFor('certs')
const files = { a: '1' }
export const hooks = Array.from({ length: 100 }, (_, index) => `hook ${index}`)
const object = (resourceVersion: string): RecordedObject => ({
  kind: 'Secret',
  namespace: 'n',
  name: 's',
  uid: 'u',
  resourceVersion,
  paths: ['a'],
})

/** A target in a directory, and its readers. */
export async function scene(parent: string, fs: FileSystem = real, options: PublicationOptions = {}) {
  const target = join(parent, 'certs')
  const replace = (more: PublicationOptions = {}, by = fs) =>
    replaceDirectory(target, { files, hooks, objects: [object('0')], ...options, ...more }, by)
  const { digest } = await replace()
  const recordPath = () => join(parent, readdirSync(parent).find((name) => names.sequenceOf(name) !== undefined) ?? '')
  return {
    target,
    digest,
    replace,
    recordPath,
    complete: (hook: string, by = fs) => completeHook(by, target, digest, hook),
    version: (resourceVersion: string, by = fs) => recordObjects(by, target, digest, [object(resourceVersion)]),
    pending: async (by = fs) => (await readPublication(by, target))?.pendingHooks,
    seenVersion: async (by = fs) => (await readPublication(by, target))?.objects[0]?.resourceVersion,
  }
}

/** The pending hooks once these have run. */
export const without = (...done: readonly string[]): string[] => hooks.filter((hook) => !done.includes(hook))

/** The first bytes of a line, as a disk that was full left them. */
export const torn = '0123456789abcdef0123456789abcdef01234567'

/** Whether each line of a record's text is whole: what a reader sees that stops at the first damaged one, as that of 0.2.0 does. */
export function isWhole(text: string): boolean {
  const lines = text.split('\n')
  const areWhole = lines.slice(0, -1).every((line) => line.slice(0, 64) === hash('sha256', line.slice(65)))
  return areWhole && lines.at(-1) === ''
}
