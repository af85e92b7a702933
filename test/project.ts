/**
 * The project's own directory. Tests run compiled, from below `dist`: they find uncompiled files (the executable, scripts, manifests,
 * pages) from here, and compiled ones by `import.meta.url`.
 */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

function above(directory: string): string {
  if (existsSync(join(directory, 'package.json'))) return directory
  const parent = dirname(directory)
  if (parent === directory) throw new Error(`No package.json above ${import.meta.dirname}`)
  return above(parent)
}

export const project = above(import.meta.dirname)

/** The program of separate files: to measure which lines of them run, and in a copy of the project that holds no bundle. */
const ofFiles = join(project, 'bin/holdfast.js')
/** The same program as an image carries it, which starts in less CPU; `scripts/compile.mjs` makes both. */
const bundled = join(project, 'dist/program/bin/holdfast.js')

/** The executable. */
export const executable = process.env['NODE_V8_COVERAGE'] === undefined && existsSync(bundled) ? bundled : ofFiles
