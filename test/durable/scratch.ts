import { mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { type Kind, nameBeside } from '../crash/judge/names.js'
import { removeTree } from '../remove-tree.js'
import { until } from '../until.js'

/** A directory for one test, removed at its end. By then this process may hold nothing in it open. */
export function scratch(t: Test, parent = tmpdir()): string {
  const directory = mkdtempSync(join(realpathSync(parent), 'holdfast-test-'))
  t.teardown(async () => {
    // What is under way closes its file in a moment; what is forgotten stays open.
    let left = openBelow(directory)
    const isClosed = (): boolean => (left = openBelow(directory)).length === 0
    if (left.length > 0) await until('it is closed', isClosed, { within: 5_000 }).catch(() => undefined)
    removeTree(directory)
    if (left.length > 0) throw new Error(`descriptors are left open: ${left.join(', ')}`)
  })
  return directory
}

/** A directory for one test, and the paths of these names in it. */
export function scratchWith<Names extends readonly string[]>(
  t: Test,
  ...names: Names
): [string, ...{ [Name in keyof Names]: string }] {
  const directory = scratch(t)
  const paths = names.map((name) => join(directory, name)) as { [Name in keyof Names]: string }
  return [directory, ...paths]
}

/** Paths of this process's own descriptors, as the kernel has them. */
export function openBelow(directory: string): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`)
      return path.startsWith(directory) ? [path] : []
    } catch {
      // The descriptor that reads this very list.
      return []
    }
  })
}

/** Relative path to content, for every file below a directory. */
export function contents(directory: string): Record<string, string> {
  const found: Record<string, string> = {}
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile()) found[path.slice(directory.length + 1)] = readFileSync(path, 'utf8')
  }
  return found
}

/** Permission bits in octal. */
export function modeOf(path: string): string {
  return (statSync(path).mode & 0o7777).toString(8)
}

/** The kinds of names that holdfast keeps in a directory beside its targets. */
export function kept(directory: string): Kind[] {
  return readdirSync(directory)
    .filter((name) => name.startsWith('.holdfast-'))
    .map((name) => nameBeside(name).kind)
    .sort()
}
