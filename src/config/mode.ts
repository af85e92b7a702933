/** The limits of a mode, in the configuration and as the value of a flag. */
export const modeLimits = {
  /** Permission bits only: no file that holdfast writes is a program of another user's. */
  file: 0o777,
  /** Permission bits, and set-group-ID or sticky where they are set. */
  directory: 0o3777,
} as const

/** Three or four octal digits, as chmod(1) reads them; undefined for any other text. */
export function parseOctal(text: string): number | undefined {
  return /^[0-7]{3,4}$/.test(text) ? Number.parseInt(text, 8) : undefined
}

/** `r` without `x` is a file's mode: of such a directory, a reader may list the names and open none. */
export function isFileMode(mode: number): boolean {
  return ((mode >> 2) & ~mode & 0o111) !== 0
}

/** As users write it: `0755`. */
export function formatMode(mode: number): string {
  return mode.toString(8).padStart(4, '0')
}
