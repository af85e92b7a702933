/**
 * The library under test: this package's dist, or the directory of HOLDFAST_DIST, such as a copy with a step removed. Loaded at run time,
 * so that the suite itself is never the mutated one.
 */
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { directoryMode, filesOf, type Target } from './targets.js'

export interface Result {
  outcome: 'created' | 'replaced' | 'unchanged'
}

export interface Failure {
  code: string
  message: string
  published: boolean
}

interface Library {
  replaceDirectories: (
    requests: object[],
    options: object,
    fs?: object,
  ) => Promise<(Result | { error: Failure & Error })[]>
  replaceFile: (path: string, content: Uint8Array, options: object, fs?: object) => Promise<Result>
  AtOnceFileSystem: new () => object
  exchange: (a: string, b: string) => Promise<void>
}

export const dist = process.env['HOLDFAST_DIST'] ?? fileURLToPath(new URL('../../../', import.meta.url))

/** A module of it, by its path below `src`. */
export function module<T>(name: string): Promise<T> {
  return import(pathToFileURL(join(dist, `src/${name}.js`)).href) as Promise<T>
}

function library(): Promise<Library> {
  return module('durable/index')
}

/** The two change places. */
export async function exchange(mountPoint: string, [a, b]: readonly [Target, Target]): Promise<void> {
  await (await library()).exchange(join(mountPoint, a.path), join(mountPoint, b.path))
}

/** Publishes a generation of all these targets, directories in one batch; what became of each. */
export async function publish(
  mountPoint: string,
  targets: readonly Target[],
  generation: number,
): Promise<(Result | { error: Failure })[]> {
  const { replaceDirectories, replaceFile, AtOnceFileSystem } = await library()
  // By turns as a program that embeds the library, and as the agent and the commands do.
  const fs = generation % 2 === 0 ? undefined : new AtOnceFileSystem()
  const [first] = targets
  if (first?.life !== undefined) {
    const { act } = await import('./life.js')
    return [await act(mountPoint, first, generation)]
  }
  if (first?.kind === 'pod') {
    // It loads the library under test, too.
    const { publishPod } = await import('./static-pod.js')
    return [await publishPod(mountPoint, first, generation)]
  }
  if (first?.kind === 'file') {
    const [wanted] = [...filesOf(first, generation).values()]
    if (targets.length !== 1 || !wanted) throw new Error('files are published one by one')
    const options = { mode: wanted.mode, ...(first.owner ? { owner: first.owner } : {}) }
    try {
      return [await replaceFile(join(mountPoint, first.path), wanted.content, options, fs)]
    } catch (error) {
      return [{ error: plainFailure(error as Failure) }]
    }
  }
  const results = await replaceDirectories(
    targets.map((target) => ({
      target: join(mountPoint, target.path),
      files: Object.fromEntries(filesOf(target, generation)),
      mode: directoryMode,
      publish: target.kind === 'symlink' ? 'symlink' : 'exchange',
      ...(target.owner ? { owner: target.owner } : {}),
    })),
    {},
    fs,
  )
  return results.map((result) => ('error' in result ? { error: plainFailure(result.error) } : result))
}

/** What survives being sent to another process. */
function plainFailure({ code, message, published }: Failure): Failure {
  if (typeof published !== 'boolean') throw new Error(`not an error of the library: ${message}`)
  return { code, message, published }
}
