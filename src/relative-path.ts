/** The directories that a relative path leads through, the first above all others: `a` and `a/b` for `a/b/c`. */
export function directoriesAbove(path: string): string[] {
  const parts = path.split('/')
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'))
}

/** The directory that holds a relative path: '' for the root of all paths. */
export function parentOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf('/'), 0))
}

/** The last part of a relative path. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}
