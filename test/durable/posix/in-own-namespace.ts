/*
 * A thread for `show-in-place.test.ts`: shows the staged content at the target's path, and answers how each of the paths looks from here.
 * The thread's mount namespace ends with it.
 */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { showInPlace } from '../../../src/durable/posix/show-in-place.js'
import type { StagedContent } from '../../../src/durable/types.js'

export interface Seen {
  readonly shown?: boolean
  /** The error instead. */
  readonly thrown?: string
  /** By path: names of a directory, text of a file, target of a link, or the errno of looking. */
  readonly paths: Readonly<Record<string, string>>
  /** Of this thread's namespace: mount points, each with its propagation. */
  readonly mounts: readonly string[]
  /** Descriptors that are open now, and were not before. */
  readonly open: number
}

export interface Order {
  readonly content: StagedContent
  readonly paths: readonly string[]
}

function look(path: string): string {
  try {
    const status = lstatSync(path)
    const mode = (status.mode & 0o7777).toString(8)
    if (status.isDirectory()) return `${mode} ${readdirSync(path).sort().join(' ')}`
    return status.isSymbolicLink() ? `-> ${readlinkSync(path)}` : readFileSync(path, 'utf8')
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error)
  }
}

const descriptors = (): number => readdirSync('/proc/self/fd').length

const { content, paths } = workerData as Order
const before = descriptors()
let answer: Pick<Seen, 'shown' | 'thrown'>
try {
  answer = { shown: showInPlace(content) }
} catch (error) {
  answer = { thrown: String(error) }
}
const mounts = readFileSync('/proc/thread-self/mountinfo', 'utf8')
  .split('\n')
  .filter((line) => line.includes(' - '))
  .map((line) => `${line.split(' ')[4]} ${/ shared:/.test(line) ? 'shared' : 'private'}`)
parentPort?.postMessage({
  ...answer,
  paths: Object.fromEntries(paths.map((path) => [path, look(path)])),
  mounts,
  open: descriptors() - before,
} satisfies Seen)
