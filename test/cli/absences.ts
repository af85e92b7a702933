/** Directories that have left the configuration, as the agent's state directory names them. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

interface Named {
  readonly onDrop?: 'remove'
  readonly absent?: object
}

export function namedIn(state: string): Record<string, Named> {
  return JSON.parse(readFileSync(join(state, 'directories.json'), 'utf8')) as Record<string, Named>
}

/** The ten minutes of each absence are over. The agent must have ended. Answers which directories are absent. */
export function endAbsences(state: string): string[] {
  const named = Object.entries(namedIn(state))
  const due = named.map(([path, one]) => [
    path,
    { ...one, ...(one.absent && { absent: { ...one.absent, due: true } }) },
  ])
  writeFileSync(join(state, 'directories.json'), JSON.stringify(Object.fromEntries(due)))
  return named.flatMap(([path, { absent }]) => (absent ? [path] : []))
}
