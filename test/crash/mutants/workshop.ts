import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { project } from '../../project.js'
import { compile, makeProgram } from '../program.js'
import { rooms } from './battery.js'
import { type Mutant, mutated, type Source } from './mutants.js'
import type { Room } from './trial.js'

/** A copy of the program in which one file at a time is changed. */
export interface Workshop extends Room {
  /** Puts this text in place of a source. */
  write(file: string, text: string): void
  remove(): void
}

/** Whether the rest of the machine can be kept from a mutant that removes or writes in the wrong place. */
function canIsolate(): boolean {
  const command = ['--mount', '--propagation', 'private', 'mount', '-o', 'remount,bind,ro', '/']
  return process.geteuid?.() === 0 && spawnSync('unshare', command).status === 0
}

/** What tests outside the core read besides the program. */
const pages = ['deploy', 'docs', 'man', 'schema', 'scripts', 'README.md', 'tsconfig.json', 'package-lock.json']

/** `copied`: rooms of tests beside those of the core. */
export function openWorkshop(copied: readonly string[] = rooms): Workshop {
  const { directory, remove } = makeProgram([], copied)
  for (const name of pages) if (existsSync(join(project, name))) symlinkSync(join(project, name), join(directory, name))
  const temporary = `${directory}.tmp`
  mkdirSync(temporary)
  return {
    directory,
    temporary,
    isolated: canIsolate(),
    write: (file, text) => writeFileSync(join(directory, file.replace(/\.ts$/, '.js')), compile(text)),
    remove: () => {
      remove()
      rmSync(temporary, { recursive: true, force: true })
    },
  }
}

/** Runs `work` while the mutant stands in the copy. */
export async function withMutant<T>(
  shop: Workshop,
  { text }: Source,
  mutant: Mutant,
  work: () => Promise<T>,
): Promise<T> {
  shop.write(mutant.file, mutated(text, mutant))
  try {
    return await work()
  } finally {
    shop.write(mutant.file, text)
    // The directory itself stays: a process that goes on has it mounted.
    for (const name of readdirSync(shop.temporary)) rmSync(join(shop.temporary, name), { recursive: true, force: true })
  }
}
