/**
 * The project's own directory. Tests run compiled, from below `dist`: they find uncompiled files (the executable, scripts, manifests,
 * pages) from here, and compiled ones by `import.meta.url`.
 */
import { chmodSync, cpSync, existsSync, readdirSync } from 'node:fs'
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

/**
 * The executable of a copy in this directory, for a process of another user: the project may lie where others may not look, as /root is.
 * The way to the directory is the caller's.
 */
export function executableForOthers(directory: string): string {
  const copy = join(directory, 'program')
  cpSync(join(project, 'dist/program'), copy, { recursive: true })
  for (const name of ['node_modules/koffi', 'node_modules/@koromix'])
    cpSync(join(project, name), join(copy, name), { recursive: true })
  // Whatever the umask of who compiled it.
  for (const entry of ['', ...(readdirSync(copy, { recursive: true }) as string[])]) chmodSync(join(copy, entry), 0o755)
  return join(copy, 'bin/holdfast.js')
}
