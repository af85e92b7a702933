/** The directories that a relative path leads through, the first above all others: `a` and `a/b` for `a/b/c`. */
export function directoriesAbove(path: string): string[] {
  const above: string[] = []
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) above.push(path.slice(0, at))
  return above
}

/** The directory that holds a relative path: '' for the root of all paths. */
export function parentOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf('/'), 0))
}

/** The last part of a relative path. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}
