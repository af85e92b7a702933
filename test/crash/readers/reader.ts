/**
 * A program that reads one target until its standard input closes: `READER HOW TARGET`, and reports as JSON: its reads, the versions, the
 * replacements of a directory that it held open, and each violation.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

const [how = '', target = ''] = process.argv.slice(2)
const names = ['tls.crt', 'tls.key', 'sub/ca.crt']
const length = 6000
const wrong = new Map<string, number>()
const versions = new Set<string>()
let looks = 0
let stale = 0
let shortened = 0
/** Looks in a row, before the writer gets this processor again for a millisecond. */
const burst = 20

const complain = (what: string): void => {
  wrong.set(what, (wrong.get(what) ?? 0) + 1)
}

/** The version that a file is of; '' for a part of one. */
function versionOf(text: string): string {
  const [version = '', padding = ''] = text.split(' ')
  if (padding.length !== length) complain(`a part: ${text.length} bytes`)
  versions.add(version)
  return version
}

const isGone = (error: unknown): boolean => (error as { code?: string }).code === 'ENOENT'

/** Each file by its path: any version, but always there and always whole. */
function byPath(): void {
  for (const name of names) {
    try {
      versionOf(readFileSync(`${target}/${name}`, 'utf8'))
    } catch (error) {
      complain(`by path, ${name}: ${(error as Error).message}`)
    }
  }
  if (!lstatSync(target).isDirectory()) complain('the target is no directory')
}

function isTarget(directory: number): boolean {
  return lstatSync(target, { bigint: true }).ino === fstatSync(directory, { bigint: true }).ino
}

/** A descriptor of the directory, and everything through it: one version, or a directory that was replaced. */
function byDescriptor(): void {
  const directory = openSync(target, constants.O_RDONLY | constants.O_DIRECTORY)
  const inside = `/proc/self/fd/${directory}`
  try {
    const listed = readdirSync(inside).sort()
    const seen = new Set(names.map((name) => versionOf(readFileSync(`${inside}/${name}`, 'utf8'))))
    if (seen.size !== 1) complain(`a mixture: ${[...seen].join()}`)
    const round = Number([...seen][0]?.split('-')[1])
    const all = [`only-${round % 2}`, 'sub', 'tls.crt', 'tls.key']
    if (listed.join() !== all.join()) {
      // The removal of a replaced directory takes its names one by one: a part of one set, in a directory that is not the target any more.
      if (listed.every((name) => all.includes(name)) && !isTarget(directory)) shortened++
      else complain(`listed ${listed.join()} of ${round}`)
    }
  } catch (error) {
    if (!isGone(error)) throw error
    // Only a directory that has been replaced may lose its files.
    if (isTarget(directory)) complain('files vanish from the target itself')
    stale++
  } finally {
    closeSync(directory)
  }
}

function file(): void {
  try {
    versionOf(readFileSync(target, 'utf8'))
  } catch (error) {
    complain(`by path: ${(error as Error).message}`)
  }
}

const look = { path: byPath, descriptor: byDescriptor, file }[how]
if (!look) throw new Error(`how to read: path, descriptor or file, not ${how}`)
const control = { end: false }
process.stdin.on('end', () => (control.end = true)).resume()
process.stdout.write('reading\n')
while (!control.end) {
  look()
  looks++
  if (looks % burst === 0) await sleep(1)
}
process.stdout.write(
  JSON.stringify({ looks, versions: versions.size, stale, shortened, wrong: Object.fromEntries(wrong) }),
)
