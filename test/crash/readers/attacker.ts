/**
 * A program that has the right to write where holdfast stages, and abuses it: `ATTACKER PARENT VICTIM`. Again and again, it replaces the
 * staged entries in PARENT by symbolic links that lead to VICTIM, a directory that has entries of the same names. Ends when its standard
 * input does, and prints how often it struck.
 */
import { closeSync, constants, openSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { isKind } from '../judge/names.js'

const [parent = '', victim = ''] = process.argv.slice(2)
const isStaged = isKind('staging', 'foreign')
const control = { end: false }
const struck: Record<string, number> = { directory: 0, subdirectory: 0, file: 0, record: 0 }
process.stdin.on('end', () => (control.end = true)).resume()
process.stdout.write('ready\n')

/** The entry makes way for a link. The attacker itself must not follow its links, or the harm would be its own. */
function strike(what: string, path: readonly string[], to: string): void {
  within(path, (prey) => {
    renameSync(prey, join(parent, `stolen-${++strikes}`))
    symlinkSync(to, prey)
    struck[what] = (struck[what] ?? 0) + 1
  })
}

function plant(path: readonly string[], to: string): void {
  within(path, (place) => {
    symlinkSync(to, place)
    struck['planted'] = (struck['planted'] ?? 0) + 1
  })
}

function within(path: readonly string[], act: (path: string) => void): void {
  const opened: number[] = []
  try {
    let directory = parent
    for (const part of path.slice(0, -1)) {
      const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
      opened.unshift(openSync(join(directory, part), flags))
      directory = `/proc/self/fd/${opened[0] ?? ''}`
    }
    act(join(directory, path.at(-1) ?? ''))
  } catch {
    // Gone meanwhile, or there already.
  } finally {
    for (const descriptor of opened) closeSync(descriptor)
  }
}

/** holdfast may still be writing into the stolen entry. */
function clear(name: string): void {
  try {
    rmSync(join(parent, name), { recursive: true, force: true })
  } catch {
    // The next round.
  }
}

let strikes = 0
let round = 0
while (!control.end) {
  for (const name of readdirSync(parent)) {
    if (name.startsWith('stolen-')) clear(name)
    if (!isStaged(name)) continue
    const way = round++ % 5
    // Before it is staged: holdfast must not write through it.
    for (const planted of ['file', 'other']) plant([name, planted], join(victim, planted))
    if (way === 0) strike('directory', [name], victim)
    if (way === 1) strike('subdirectory', [name, 'sub'], join(victim, 'sub'))
    if (way === 2) strike('file', [name, 'file'], join(victim, 'file'))
    if (way === 3) strike('file', [name, 'sub', 'file'], join(victim, 'sub', 'file'))
    const record = readdirSync(parent).find(isKind('record'))
    if (way === 4 && record !== undefined) strike('record', [record], join(victim, 'file'))
  }
  await setImmediate()
}
process.stdout.write(JSON.stringify(struck))
