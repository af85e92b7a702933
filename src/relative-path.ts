/** The directories that a relative path leads through, the first above all others: `a` and `a/b` for `a/b/c`. */
export function directoriesAbove(path: string): string[] {
  const parts = path.split('/')
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'))
}
