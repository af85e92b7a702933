import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

/** A directory of the test's own, removed at its end. */
export function scratch(t: Test, parent = tmpdir()): string {
  const directory = mkdtempSync(join(realpathSync(parent), 'holdfast-test-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  return directory
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

/** What holdfast keeps in a directory beside its targets: `generation`, `lock`, `record`, `staging`. */
export function kept(directory: string): string[] {
  const kindOf = (name: string): string => {
    if (name.endsWith('.lock')) return 'lock'
    if (/^\.holdfast-[0-9a-f]{16}\.[0-9]+-/.test(name)) return 'generation'
    return /^\.holdfast-[0-9a-f]{16}\./.test(name) ? 'record' : 'staging'
  }
  return readdirSync(directory)
    .filter((name) => name.startsWith('.holdfast-'))
    .map(kindOf)
    .sort()
}
