/* What some scenes do, for people: the locks, changes and barriers, in their order. steps.txt holds them; it proves nothing. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { project } from '../../project.js'
import type { Played } from './play.js'
import { type Call, isChange } from './recorder.js'

/** The scenes that steps.txt holds. */
export const shownScenes: readonly string[] = [
  'first, with new ancestors',
  'replacement',
  'unchanged',
  'two with a common beginning',
  'symlink form, again',
  'a file, replaced',
  'hold',
  'taking away a target with history',
  'taking back',
  'a directory gets another path',
]

const isStep = (call: Call): boolean =>
  (isChange(call) || call.name === 'tryLock' || call.name === 'sync') && call.failed === undefined

/** Without what names a target's own entries, and without the content of a record. */
function briefly({ name, words }: Call): string {
  const short = words()
    .replaceAll(/\.holdfast-[0-9a-f]{16}/g, '~')
    .replaceAll(/0{15}(?=[0-9a-f])/g, '')
    .replace('tryLock', 'lock')
  return name === 'write' ? short.replace(/(~\.[0-9]+) ".*$/, '$1, a line of a record') : short
}

const textOf = (played: readonly Played[]): string =>
  played.map(({ scene, calls }) => `# ${scene.name}\n${calls.filter(isStep).map(briefly).join('\n')}\n`).join('\n')

const file = join(project, 'test/durable/calls/steps.txt')

/** What the scenes do now, and what steps.txt says; HOLDFAST_WRITE_STEPS=1 writes it anew. */
export function steps(played: readonly Played[]): { now: string; kept: string } {
  const now = textOf(shownScenes.flatMap((name) => played.find(({ scene }) => scene.name === name) ?? []))
  if (process.env['HOLDFAST_WRITE_STEPS'] === '1') writeFileSync(file, now)
  return { now, kept: readFileSync(file, 'utf8') }
}
