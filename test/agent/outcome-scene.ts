/** An operation's outcome and its context, for the tests of the table of outcomes and of each report that the agent makes. */
import type { Context, PassOutcome } from '../../src/agent/outcome.js'
import type { ObjectReference } from '../../src/objects/types.js'

export const secret: ObjectReference = { kind: 'Secret', namespace: 'ns', name: 'a' }
export const known = { ...secret, uid: 'uid-a', resourceVersion: '7' }

export const context: Context = {
  operation: 'publish /srv/a',
  directory: '/srv/a',
  causes: ['start'],
  milliseconds: 1,
  drift: undefined,
  intact: true,
  hold: undefined,
  removedObjects: [],
  changedObjects: [],
}

export const published: Extract<PassOutcome, { kind: 'published' }> = {
  kind: 'published',
  change: 'replaced',
  digest: 'sha256:1',
  sequence: 3,
  objects: [{ ...known, paths: ['tls.crt'] }],
  warnings: [],
  certificates: [],
  hooks: [],
  unproven: false,
}
