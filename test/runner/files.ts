/** Which test files there are, and which of them share a process. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { project } from '../project.js'

/** Every test file, from the project's root, in order. */
export function testFiles(): string[] {
  return readdirSync(join(project, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join('test', name))
    .sort()
}

/** The path of a source's compiled module, from the project's root; a compiled file stands for itself. */
export function compiled(path: string): string {
  return path.endsWith('.ts') ? join('dist', path.replace(/\.ts$/, '.js')) : path
}

/**
 * The files that these words mean: a file, all below a directory, or all whose path holds the word.
 * @throws Error where a word means none.
 */
export function namedFiles(words: readonly string[], all: readonly string[], directory: string): string[] {
  const found = words.flatMap((word) => {
    const path = relative(project, resolve(directory, word))
    const exact = all.filter((file) => file === path || file.startsWith(`${path}/`))
    const meant = exact.length > 0 ? exact : all.filter((file) => file.includes(word))
    if (meant.length === 0) throw new Error(`No test file is meant by ${word}`)
    return meant
  })
  return [...new Set(found)]
}

/**
 * The line by which a file has a process to itself, with the reason: it measures its process, counts what that has open, changes modules
 * for good, or keeps threads waiting for a disk. What a test changes and puts back at its end is no reason, for the files of a process run
 * one after the other: signals, masks, users, the environment, the directory, and replaced calls.
 */
const alone = /^\/\/ Own process: \S/m

/** Whether this test file leaves its process as it found it. */
export function sharesItsProcess(path: string): boolean {
  return !alone.test(readFileSync(join(project, path), 'utf8'))
}
