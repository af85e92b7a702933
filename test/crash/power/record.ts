/** Runs a scenario on a new logged disk. */
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import type { FileSystem } from '../../disk/disk.js'
import { LoggedDisk, sizes } from './logged-disk.js'
import { Random } from '../../random.js'
import type { Depth, Recording } from './recording.js'
import { sceneOf, type Scenario } from './scene.js'

export interface RunContext {
  readonly fileSystem: FileSystem
  /** The directory for the recordings. */
  readonly directory: string
  readonly seed: number
  readonly depth: Depth
}

export async function record(
  scenario: Scenario,
  { fileSystem, directory, seed, depth }: RunContext,
): Promise<Recording> {
  const place = mkdtempSync(join(directory, 'run-'))
  const disk = await LoggedDisk.create(fileSystem, place)
  try {
    const log = await disk.logTo('all')
    await disk.prepare(scenario.targets)
    await scenario.run(sceneOf(disk, Random.for(seed, `run of ${scenario.name} on ${fileSystem}`)))
    await disk.disk.ask('log off')
    return {
      fileSystem,
      scenario: scenario.name,
      size: sizes[fileSystem],
      logs: [log],
      cuts: 'flushes',
      seed,
      depth,
      ...(depth === 'default' && scenario.most !== undefined && { most: scenario.most }),
    }
  } finally {
    await disk.disk.destroy()
  }
}
