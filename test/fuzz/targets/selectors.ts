import { parseSelector, SelectorError, selects } from '../../../src/label-selector.js'
import type { Target } from '../target.js'

/** go-readings tries the same. */
const sets = [{}, { app: 'web' }, { app: 'db', tier: '' }, { in: 'notin', 'k8s.io/a': 'b' }]

export const selectors: Target<boolean[]> = {
  name: 'selectors',
  files: ['label-selector.js'],
  longest: 65_536,
  words: [
    'app',
    'tier',
    'web',
    'db',
    ' in ',
    ' notin ',
    'in',
    'notin',
    '==',
    '!=',
    '=',
    '!',
    '(',
    ')',
    ',',
    '<',
    '>',
    'k8s.io/a',
    '/',
  ],
  read(input) {
    try {
      const selector = parseSelector(input.toString())
      return sets.map((labels) => selects(selector, labels))
    } catch (error) {
      if (error instanceof SelectorError) return undefined
      throw error
    }
  },
  go: {
    as: 'selector',
    contradiction: (input, ours, { error, value }) => {
      if (ours !== undefined && error !== undefined) return `holdfast takes it, and client-go says: ${error}`
      if (ours !== undefined)
        return String(ours) === String(value)
          ? undefined
          : `holdfast selects ${ours.join()}, client-go ${String(value)}`
      // Refused with intent: comparisons by number, a NUL, at which client-go stops to read, and the selector of everything, a mistake mostly.
      const isMeant = /[<>\0]/.test(input.toString('latin1')) || input.toString().trim() === ''
      return error === undefined && !isMeant ? 'client-go takes it, and holdfast does not' : undefined
    },
  },
}
