import { createCipheriv, createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { adviceOnShortage, codeOf, messageOf } from '../src/errors.js'
import { readRegularFile } from '../src/regular-file.js'
import type { Found } from './types.js'

/** Sizes of the files, in bytes: below, at and above a block, and some blocks. */
const sizes = [200, 4096, 5000, 20_000, 65_536] as const

/** No file of a generation is larger; in bytes. */
const largest = 2 ** 20

/**
 * The files of a generation, made of nothing but its number and the run's seed, so that the judge needs no copy to compare with. Number,
 * sizes and names of the files differ from one generation to the next.
 */
export function filesOfGeneration(seed: string, generation: number): Record<string, Buffer> {
  const shape = createHash('sha256').update(`${seed} ${generation}`).digest()
  const count = 3 + ((shape[0] ?? 0) % 6)
  const files: Record<string, Buffer> = {}
  for (let index = 0; index < count; index++) {
    const directory = index % 3 === 2 ? `part-${(shape[1] ?? 0) % 4}/` : ''
    const path = `${directory}file-${index}`
    files[path] = fileContent(seed, generation, path, sizes[(shape[index + 2] ?? 0) % sizes.length] ?? sizes[0])
  }
  return files
}

/** A line that names seed, generation and path, and bytes that no other file has. */
function fileContent(seed: string, generation: number, path: string, size: number): Buffer {
  const head = Buffer.from(`${headLine(seed)}${generation}: ${path}\n`)
  const key = createHash('sha256').update(`${seed} ${generation} ${path}`).digest().subarray(0, 16)
  const body = createCipheriv('aes-128-ctr', key, Buffer.alloc(16)).update(Buffer.alloc(size))
  return Buffer.concat([head, body])
}

function headLine(seed: string): string {
  return `holdfast torture ${seed} generation `
}

/** Which generation a file says that it is of; undefined where its first bytes are no generation's. */
function claimedBy(seed: string, content: Buffer): number | undefined {
  const head = headLine(seed)
  const text = content.subarray(0, head.length + 20).toString('latin1')
  const number = text.startsWith(head) ? /^(\d{1,15}): /.exec(text.slice(head.length))?.[1] : undefined
  return number === undefined ? undefined : Number(number)
}

/**
 * Compares a directory with the generations that were published as it. Writes nothing; a file that the disk does not give is torn.
 * @throws Error where this process may not read it, or has run short of something: that says nothing of the disk
 */
export async function examine(directory: string, seed: string): Promise<Found> {
  let found: Map<string, Buffer>
  try {
    found = await readFiles(directory)
  } catch (error) {
    if (error instanceof Missing) return { state: 'missing' }
    const advice = ownTrouble(error instanceof Error ? codeOf(error.cause) : undefined)
    if (advice !== undefined) {
      throw new Error(`cannot examine ${directory}: ${messageOf(error)}; ${advice}; nothing was judged`, {
        cause: error,
      })
    }
    return { state: 'torn', problem: messageOf(error) }
  }
  const claims = new Map<number, string>()
  for (const [path, content] of found) {
    const generation = claimedBy(seed, content)
    if (generation === undefined) {
      return { state: 'torn', problem: `${path} (${content.length} bytes) does not begin as a file of any generation` }
    }
    claims.set(generation, path)
  }
  const [first, ...others] = [...claims].sort(([a], [b]) => a - b)
  if (first === undefined) return { state: 'torn', problem: 'the directory is empty' }
  if (others.length > 0) {
    const named = [first, ...others].map(([generation, path]) => `${path} of generation ${generation}`)
    return { state: 'mixed', problem: named.slice(0, 4).join(', ') }
  }
  const [generation] = first
  const problem = difference(filesOfGeneration(seed, generation), found)
  return problem === undefined
    ? { state: 'whole', generation }
    : { state: 'torn', problem: `generation ${generation}: ${problem}` }
}

/** Advice about an errno that is this process's doing, and not the disk's. */
function ownTrouble(code: string | undefined): string | undefined {
  if (code === 'EACCES' || code === 'EPERM') return 'run it as the user who began the run'
  return adviceOnShortage(code)
}

function difference(expected: Record<string, Buffer>, found: ReadonlyMap<string, Buffer>): string | undefined {
  for (const [path, content] of Object.entries(expected)) {
    const there = found.get(path)
    if (there === undefined) return `${path} is missing`
    if (there.length !== content.length) return `${path} has ${there.length} bytes of ${content.length}`
    if (!there.equals(content)) return `${path} differs from byte ${firstDifference(there, content)} on`
  }
  const more = [...found.keys()].find((path) => !Object.hasOwn(expected, path))
  return more === undefined ? undefined : `${more} is none of its files`
}

function firstDifference(one: Buffer, other: Buffer): number {
  return one.findIndex((byte, index) => byte !== other[index])
}

/** The directory itself is not there. */
class Missing extends Error {}

async function readFiles(directory: string): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>()
  const visit = async (path: string): Promise<void> => {
    const entries = await reading(path || '.', readdir(join(directory, path), { withFileTypes: true })).catch(
      (error: unknown) => {
        if (path === '' && error instanceof Error && codeOf(error.cause) === 'ENOENT') throw new Missing()
        throw error
      },
    )
    for (const entry of entries) {
      const name = join(path, entry.name)
      if (entry.isDirectory()) await visit(name)
      else files.set(name, await reading(name, readRegularFile(join(directory, name), largest, { follow: false })))
    }
  }
  await visit('')
  return files
}

/** Errors name the path within the directory, and the errno. */
async function reading<T>(path: string, call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    throw new Error(`${path} cannot be read: ${codeOf(error) ?? messageOf(error)}`, { cause: error })
  }
}
