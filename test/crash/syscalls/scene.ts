/** What all scenarios of the sweep have in common: where they happen, and how `sync` is run in them. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { plainNode } from './distribution.js'

export interface Scenario {
  readonly name: string
  /** Targets, relative to the directory that all of this happens in. */
  readonly targets: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
  /** Makes the content before. */
  readonly prepare: (root: string) => Promise<void>
  readonly args: (root: string) => string[]
  /** The same once more; resolves to each target's outcome, or throws. */
  readonly again: (root: string, executable: string) => Promise<string[]>
  /**
   * It does more than to publish: of its calls, none is the exchange after which everything has to be known. It still may end with 0 only
   * where all is done, and has to name what failed.
   */
  readonly hasPhases?: false
  /** What counts of each target beside its content. */
  readonly look?: (root: string) => Promise<string>
  /** The faults beside the targets, after a second run of the command. */
  readonly beside?: (root: string) => Promise<string[]>
  /** Calls that every run must make, as `call subject`, before the exchange and after it: the algorithm's own promise. */
  readonly before: readonly string[]
  readonly after: readonly string[]
}

/** Everything of a scenario is below this directory; nothing that Node reads for itself is. */
export const placeOf = (root: string): string => join(root, 'place')

export function put(directory: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), text)
  }
}

/** The directory of what an agent remembers, beside the place. */
const stateName = 'state'

export function clean(root: string): string {
  const place = placeOf(root)
  rmSync(place, { recursive: true, force: true })
  // With it, the next run would make fewer calls than the one whose calls are aimed at.
  rmSync(join(root, stateName), { recursive: true, force: true })
  mkdirSync(place)
  return place
}

/** What the Secrets of `configure` give. */
export const synced = (version: string) => ({
  certificate: version,
  key: version,
  ...(version === 'new' ? { added: version } : { gone: version }),
  'sub/more': version,
})

/** The objects at this version, and a configuration with these directories, all of that content. */
export function configure(root: string, version: string, directories: readonly object[]): void {
  const secret = (name: string, stringData: object): string =>
    JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData })
  const { 'sub/more': more, ...pair } = synced(version)
  put(join(root, 'objects'), { 'pair.yaml': secret('pair', pair), 'other.yaml': secret('other', { more }) })
  const contents = [{ secret: 'pair' }, { secret: 'other', into: 'sub' }]
  const document = {
    apiVersion: 'holdfast.dev/v1alpha1',
    kind: 'AgentConfiguration',
    stateDirectory: join(root, stateName),
    source: { namespace: 'demo', files: { path: join(root, 'objects') } },
    directories: directories.map((directory) => ({ ...directory, contents })),
  }
  writeFileSync(configurationOf(root), JSON.stringify(document))
}

const configurationOf = (root: string): string => join(root, 'holdfast.yaml')

export const syncArgs = (root: string): string[] => ['sync', '--config', configurationOf(root), '-o', 'json']

/** Outcomes of the directories. */
export async function runSync(root: string, executable: string): Promise<string[]> {
  const { directories } = (await run(executable, syncArgs(root))) as { directories: { outcome: string }[] }
  return directories.map(({ outcome }) => outcome)
}

/** The document that a command prints; throws unless it ends with 0. */
async function run(executable: string, args: readonly string[]): Promise<unknown> {
  const child = spawn('env', plainNode([executable, ...args]), { stdio: ['ignore', 'pipe', 'pipe'] })
  const text = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text.stdout += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (text.stderr += chunk))
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`exit ${code}: ${text.stdout}${text.stderr}`)
  return JSON.parse(text.stdout)
}
