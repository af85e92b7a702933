/** Directories that have left the configuration, and the ten minutes that an agent waits before it removes one. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

interface Named {
  readonly onDrop?: 'remove'
  readonly left?: true
}

/** As the agent's state directory names them. */
export function namedIn(state: string): Record<string, Named> {
  return JSON.parse(readFileSync(join(state, 'directories.json'), 'utf8')) as Record<string, Named>
}

const program = `
  const now = performance.now.bind(performance)
  let passed = 0
  performance.now = () => now() + passed
  process.on('SIGUSR2', () => {
    passed += 600_000
    process.emit('SIGHUP')
  })`

/** The environment of an agent for which ten minutes pass at each SIGUSR2: it then looks again, as at a SIGHUP. */
export const hurried = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(program)}` }

export function tenMinutesPass(agent: { readonly signal: (name: NodeJS.Signals) => void }): void {
  agent.signal('SIGUSR2')
}
