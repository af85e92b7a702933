/** Reads `debounce`: how long the agent waits for what changes together. */
import { duration, parseDuration } from './duration.js'
import { mappingOf, type Fields, type ValueType } from './field.js'
import { referencesOf, selectionsOf } from './references.js'
import type { Content, Debounce } from './types.js'

const several = { quiet: '100ms', atMost: '5s' }

const fields = {
  quiet: {
    type: duration({ least: '0s', most: '1h' }),
    description: 'the agent publishes once no object of the directory has changed for this time; 0s: at once',
    default: several.quiet,
  },
  atMost: {
    type: duration({ least: '0s', most: '1h' }),
    description: 'the longest time that a change waits for others',
    default: several.atMost,
  },
} satisfies Fields<unknown>

export const debounce: ValueType<Debounce> = mappingOf({ fields }, ({ read: { quiet, atMost }, at }, value) => {
  if (quiet <= atMost) return { quiet, atMost }
  const given = at.quiet ?? at.atMost ?? value
  return given.wrong(
    `quiet (${quiet}ms) is longer than atMost (${atMost}ms)`,
    'write a longer atMost, or a shorter quiet',
  )
})

/** Without the field: objects of one directory may belong together, and one by itself has nothing to wait for. */
export function debounceFor(contents: readonly Content[]): Debounce {
  const directory = { contents }
  const isOne = selectionsOf(directory).length === 0 && referencesOf(directory).length <= 1
  const milliseconds = (written: string) => (isOne ? 0 : (parseDuration(written) ?? 0))
  return { quiet: milliseconds(several.quiet), atMost: milliseconds(several.atMost) }
}
