/** Which test files there are, and which of them share a process. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative, resolve } from 'node:path'
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
 * What a test does to its whole process, or learns from it: signals, the environment, descriptors, clocks, replaced modules; the hooks that
 * it sets on the root of its tests, which several files would share; and slow disks, for which others would wait. Tests that start and kill
 * other processes, or ask for one of their descriptors by its number, do no harm; nor do masks of modes, which
 * each test puts back.
 */
const processWide =
  /node:(worker_threads|cluster|v8)|\bprocess\.(on|once|off|exit|exitCode|kill\(process|chdir|emit|set\w+|env(\.\w+|\[[^\]]+\]) *(\?\?)?=[^=])|delete process\.env|\/proc\/(self|thread-self)(?!\/(fd|fdinfo)\/\$|\/mountinfo)|syncBuiltinESMExports|Object\.assign\(koffi|\/disk\.js'|\bglobalThis\b|\bDate\.now *=|\bmock\b|\bgc\(|^(void |await )?t\.(?!test\b|comment\b|teardown\b)/m

/** Helpers that look like it and do no harm, each with the reason. Half of all files import the first. */
const harmless: Readonly<Record<string, string>> = {
  'test/durable/scratch.ts': 'of the descriptors of the process, it looks at those below a directory of one test',
  'test/simulated-time.ts': 'each test that takes this time gives the real one back at its end',
  'test/directories/make-certificates.ts': 'at the exit of the process, it removes a directory of its own',
}

/** Whether this test file, and all that it imports from the tests, leaves its process as it found it. */
export function sharesItsProcess(path: string, seen = new Set<string>()): boolean {
  if (seen.has(path) || path in harmless) return true
  seen.add(path)
  const text = readFileSync(join(project, path), 'utf8')
  if (processWide.test(text)) return false
  return importsOfTests(path, text).every((other) => sharesItsProcess(other, seen))
}

function importsOfTests(path: string, text: string): string[] {
  return [...text.matchAll(/\bfrom '(\.[^']*)\.js'/g)]
    .map(([, name = '']) => normalize(join(dirname(path), `${name}.ts`)))
    .filter((other) => other.startsWith('test/') && existsSync(join(project, other)))
}
