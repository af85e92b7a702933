/**
 * The project's own directory. Tests run compiled, from below `dist`: what is not compiled (the executable, scripts, manifests,
 * pages) is found from here, and what is compiled by `import.meta.url`.
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

/** The executable, as the package carries it. */
export const executable = join(project, 'bin/holdfast.js')
