import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { project } from '../../project.js'
import type { Scene } from './scene.js'

/**
 * Compares what the scenes give with the file that keeps it, up to the first difference. HOLDFAST_RECORD_CALLS=1 writes it anew: `git diff`
 * then shows them all.
 */
export async function compareWith(
  t: Test,
  name: string,
  scenes: readonly Scene[],
  linesOf: (scene: Scene) => Promise<string[]>,
): Promise<void> {
  const file = join(project, 'test/durable/calls', name)
  if (process.env['HOLDFAST_RECORD_CALLS'] === '1') {
    const parts: string[] = []
    for (const scene of scenes) parts.push(`# ${scene.name}\n${(await linesOf(scene)).join('\n')}\n`)
    writeFileSync(file, parts.join('\n'))
  }
  const kept = readFileSync(file, 'utf8').split(/^# /m).slice(1)
  const titles = kept.map((part) => part.slice(0, part.indexOf('\n')))
  t.same(
    titles,
    scenes.map((scene) => scene.name),
  )
  for (const [index, scene] of scenes.entries()) {
    const [, ...lines] = kept[index]?.trimEnd().split('\n') ?? []
    if (!t.same(await linesOf(scene), lines, scene.name)) break
  }
}
