/** What an agent of such directories knows as a scrape asks it. */
import type { Hook } from '../../../src/config/hooks.js'
import { unknownFacts, type DirectoryFacts } from '../../../src/agent/directory-state.js'
import type { AgentReading } from '../../../src/agent/report/prometheus.js'
import { directoryOf } from '../../directories/objects.js'

export function readingOf(directories: readonly DirectoryFacts[], more: Partial<AgentReading> = {}): AgentReading {
  return {
    isValid: true,
    inForceSince: new Date(1000),
    clientCertificate: undefined,
    directories: directories.map((facts) => ({ facts, running: 0 })),
    dropPending: [],
    waiting: [],
    ...more,
  }
}

/** Of /srv/a, with hooks of these names; those of `due` have yet to run. */
export function factsWithHooks(names: readonly string[], due = names): DirectoryFacts {
  const hookOf = (name: string): Hook => ({
    ...{ type: 'exec', name, key: name, place: 'afterPublish[0]', timeout: 1, retries: 0, jitter: 0, command: [name] },
  })
  const record = { digest: 'sha256:1', sequence: 1, publishedAt: new Date(5000), pendingHooks: due, objects: [] }
  return { ...unknownFacts(directoryOf([], { path: '/srv/a', afterPublish: names.map(hookOf) })), record }
}
