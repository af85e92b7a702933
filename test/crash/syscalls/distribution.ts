/**
 * The program and library under test: the built ones, or those of HOLDFAST_DIST, a directory compiled elsewhere (without a step of the
 * algorithm, to see that a suite notices).
 */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type * as Native from '../../../native/index.js'
import type * as Library from '../../../src/durable/index.js'
import { executable as projectExecutable, executableForOthers as copied } from '../../project.js'

const foreign = process.env['HOLDFAST_DIST']

export const distribution = foreign ?? fileURLToPath(new URL('../../..', import.meta.url))

if (!existsSync(join(distribution, 'src/cli/main.js'))) {
  throw new Error(`${distribution} holds no built program: run "npm run build" first`)
}

/** The executable; for another build, one line that does the same. */
export function executable(scratch: string): string {
  if (foreign === undefined) return projectExecutable
  const main = JSON.stringify(pathToFileURL(join(foreign, 'src/cli/main.js')))
  const launcher = join(scratch, 'launch.mjs')
  writeFileSync(
    launcher,
    `const { main } = await import(${main})\nprocess.exitCode = await main(process.argv.slice(2))\n`,
  )
  return launcher
}

/** The executable where another user may read it. */
export function executableForOthers(scratch: string): string {
  return foreign === undefined ? copied(scratch) : executable(scratch)
}

export function library(): Promise<typeof Library> {
  return import(pathToFileURL(join(distribution, 'src/durable/index.js')).href) as Promise<typeof Library>
}

export function native(): Promise<typeof Native> {
  return import(pathToFileURL(join(distribution, 'native/index.js')).href) as Promise<typeof Native>
}

/** What a child program of these tests is given besides its own variables; nothing of this machine's. */
export const environment: Record<string, string> = {
  PATH: process.env['PATH'] ?? '',
  HOLDFAST_BUILT: distribution,
}

/** Arguments of env(1) that run Node with these variables and no others. */
export function plainNode(args: readonly string[], variables: NodeJS.ProcessEnv = environment): string[] {
  return ['-i', ...Object.entries(variables).map(([name, value]) => `${name}=${value}`), process.execPath, ...args]
}

/** The path of a compiled module, as a program for Node. */
export function program(module: URL): string {
  return fileURLToPath(module)
}
