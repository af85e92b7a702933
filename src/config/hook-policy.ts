/** How patiently the agent runs a hook: these fields stand beside its type, and not in it. */
import { duration } from './duration.js'
import type { Fields } from './field.js'
import { integer } from './value-types.js'

const mostRetries = 100

export const policyFields = {
  timeout: { type: duration(), description: 'for one try', default: '10s' },
  retries: { type: integer(0, mostRetries), description: 'further tries after the first', default: 3 },
  jitter: {
    type: duration(),
    description: 'the time within which the nodes of a cluster run the hook, each at its own time; default: none',
  },
} satisfies Fields<unknown>

export const misplacedPolicy: Readonly<Record<string, string>> = Object.fromEntries(
  Object.keys(policyFields).map((name) => [name, 'it belongs to the hook, beside its type']),
)
