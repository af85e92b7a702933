/** The one call that the comparison needs and Node lacks. The library under test has another binding. */
import koffi from 'koffi'

const renameat2 = koffi
  .load(null)
  .func('int renameat2(int olddirfd, const char *oldpath, int newdirfd, const char *newpath, unsigned int flags)') as (
  oldDirectory: number,
  oldPath: string,
  newDirectory: number,
  newPath: string,
  flags: number,
) => number

const currentDirectory = -100
const RENAME_EXCHANGE = 2

/** Exchanges two absolute paths; throws with the errno. */
export function exchangePaths(a: string, b: string): void {
  if (renameat2(currentDirectory, a, currentDirectory, b, RENAME_EXCHANGE) !== 0) {
    throw new Error(`renameat2 of ${a} and ${b}: errno ${koffi.errno()}`)
  }
}
