import { lstatSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { codeOf } from './errors.js'

/**
 * The absolute form of a path, by its text: without `.`, `..` and empty parts. A `..` behind a symbolic link leads the kernel to the parent
 * of the link's target, and the text to the parent of the link: such a path is refused, since holdfast would write to another place than
 * the user meant. Looks at the disk only where there is a `..`. `base`: where a relative path begins, absolute.
 * @throws TypeError, which names the place, or says that the working directory has gone
 */
export function absolutePath(path: string, base?: string): string {
  let current = path.startsWith('/') ? '/' : (base ?? workingDirectory(path))
  for (const part of path.split('/')) {
    if (part === '..') refuseLink(path, current)
    current = part === '..' ? dirname(current) : join(current, part)
  }
  return current.length > 1 && current.endsWith('/') ? current.slice(0, -1) : current
}

/** Where a relative path begins. @throws TypeError, which says that the working directory has gone */
export function workingDirectory(path: string): string {
  try {
    return process.cwd()
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
    throw new TypeError(
      `${JSON.stringify(path)} begins in the working directory, which was removed: name an absolute path, or change to another directory`,
      { cause: error },
    )
  }
}

function refuseLink(path: string, before: string): void {
  if (lstatSync(before, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return
  throw new TypeError(
    `${JSON.stringify(path)}: ${before}/.. is not ${dirname(before)}, since ${before} is a symbolic link: write the path without ".."`,
  )
}
