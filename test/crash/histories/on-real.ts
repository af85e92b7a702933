/** What other programs do, on a real file system. */
import { execFileSync } from 'node:child_process'
import { appendFileSync, chmodSync, linkSync, lstatSync, lchownSync, mkdirSync, renameSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { linkText } from './on-model.js'

/** A program whose failure is enough, without its words. */
function run(program: string, ...args: readonly string[]): void {
  execFileSync(program, args, { stdio: 'ignore' })
}

export function rename(root: string, from: string, to: string): void {
  renameSync(join(root, from), join(root, to))
}

export function copy(root: string, from: string, to: string): void {
  // A program's failure in the midst would leave half of it: what cannot be done at all is refused first.
  if (`${to}/`.startsWith(`${from}/`)) throw new Error(`${to} is inside ${from}`)
  run('cp', '-aT', '--remove-destination', join(root, from), join(root, to))
}

export function link(root: string, from: string, to: string): void {
  linkSync(join(root, from), join(root, to))
}

export function symlink(root: string, from: string, to: string): void {
  symlinkSync(linkText(from, to), join(root, to))
}

export function remove(root: string, path: string): void {
  lstatSync(join(root, path))
  run('rm', '-rf', '--one-file-system', join(root, path))
}

export function mkdir(root: string, path: string): void {
  mkdirSync(join(root, path), { mode: 0o755 })
}

export function write(root: string, path: string, text: string): void {
  appendFileSync(join(root, path), text, { mode: 0o644 })
}

export function chmod(root: string, path: string, mode: number): void {
  if (lstatSync(join(root, path)).isSymbolicLink()) throw new Error(`${path} is a link`)
  chmodSync(join(root, path), mode)
}

export function chown(root: string, path: string): void {
  if (lstatSync(join(root, path)).isSymbolicLink()) throw new Error(`${path} is a link`)
  lchownSync(join(root, path), 7, 8)
}

export function setAcl(root: string, path: string, inherited: boolean): void {
  run('setfacl', ...(inherited ? ['-d'] : []), '-m', 'u:1000:r', join(root, path))
}

export function mount(root: string, from: string, to: string): void {
  run('mount', '--bind', join(root, from), join(root, to))
}

export function unmount(root: string, path: string): void {
  run('umount', join(root, path))
}
