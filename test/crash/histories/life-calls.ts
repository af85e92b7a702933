/** The calls of a life, on whichever file system: by hand as the commands make them, and a pass as the agent makes it. */
import * as places from '../../../src/durable/single-calls/swap-places.js'
import { join } from 'node:path'
import { compareWithRecord } from '../../../src/agent/detect-drift.js'
import { publicationRequest } from '../../../src/agent/desired-content.js'
import { DirectoryState } from '../../../src/agent/directory-state.js'
import { hasOtherMove } from '../../../src/agent/leaving/moves.js'
import { defaultLimits } from '../../../src/config/directory.js'
import type { DirectoryConfiguration } from '../../../src/config/types.js'
import { takeOver } from '../../../src/durable/adopt/adoption.js'
import { atPlace } from '../../../src/durable/path/index.js'
import { DurableWriteError, unfit, wrapError } from '../../../src/durable/errors.js'
import type { FileSystem } from '../../../src/durable/file-system.js'
import { readPublication } from '../../../src/durable/look/inspect.js'
import { pruneHistory, readHistory } from '../../../src/durable/look/read-history.js'
import { endRelocation, relocate, type RelocationProgress } from '../../../src/durable/move/relocation.js'
import { setHold, letGo } from '../../../src/durable/operator/hold.js'
import { rollBack } from '../../../src/durable/operator/rollback.js'
import { publish, resultsOf } from '../../../src/durable/publish/publish.js'
import { directoryPublication, filePublication } from '../../../src/durable/publish/replace.js'
import type { DirectoryPublicationOptions } from '../../../src/durable/publish/request.js'
import { completeHook, recordObjects } from '../../../src/durable/record/record-files.js'
import { removePublished } from '../../../src/durable/remove/removal.js'
import { refuseKeptByAgent } from '../../../src/durable/target/refusals.js'
import type { DirectoryRequest, PublicationOptions, RecordedObject, ReplaceResult } from '../../../src/durable/types.js'
import { isSystemError, messageOf } from '../../../src/errors.js'
import type { Log } from '../../../src/log.js'
import { kindOf } from './contents.js'
import type { Call } from './life.js'

/** What outlives one call: the version that the source tells, and what an agent that runs remembers of each directory. */
export interface Memory {
  version: number
  states: Map<string, DirectoryState>
}

/** What a call has answered. */
export interface Answered {
  /** Of a publication, a rollback, and a pass; of a batch, two. */
  readonly results: readonly ReplaceResult[]
  /** Of an agent's pass: it has compared, and found all as it must be. */
  readonly asItWas?: true
  readonly value?: unknown
  readonly progress?: RelocationProgress
  readonly error?: Error
  /** Of a pass whose own path is published. */
  readonly moveError?: Error
  /** What it warned of. */
  readonly told: string
}

export function filesOf(content: number): Record<string, string> {
  return {
    key: `key ${content}\n`,
    [`only-${content}`]: `certificate ${content} `.repeat(30),
    'sub/same': 'the same\n',
  }
}

/** What the source has of this version: an earlier content comes back with a newer one. */
export function contentOfVersion(version: number): number {
  return [0, 1, 2, 1][version % 4] ?? 0
}

/** What every publication by hand and every pass asks for. */
const history = { keep: 2, maxAge: null }

export async function makeCall(fs: FileSystem, base: string, call: Call, memory: Memory): Promise<Answered> {
  const told: string[] = []
  const hear = (_: object, message: string): void => void told.push(message)
  const log: Log = { debug() {}, info() {}, warn: hear, error: hear }
  const answered: { -readonly [Field in keyof Answered]: Answered[Field] } = { results: [], told: '' }
  try {
    Object.assign(answered, await calls[call.call]({ fs, base, call, memory, log, path: join(base, call.path) }))
  } catch (error) {
    if (!(error instanceof Error)) throw error
    answered.error = isSystemError(error) && !(error instanceof DurableWriteError) ? wrapped(call, error) : error
  }
  return { ...answered, told: told.join('\n') }
}

/** As the door of the core does it for looks. */
function wrapped({ path }: Call, error: Error): Error {
  return wrapError(path, error, false, `could not read ${path}`)
}

interface Making {
  readonly fs: FileSystem
  readonly base: string
  readonly call: Call
  readonly memory: Memory
  readonly log: Log
  /** Absolute. */
  readonly path: string
}
type Part = Partial<Omit<Answered, 'told'>>

const calls: Readonly<Record<Call['call'], (making: Making) => Promise<Part>>> = {
  replace: async (making) => ({ results: await byHand(making, [making.call.path]) }),
  batch: async (making) => ({
    results: await byHand(making, [making.call.path, making.call.from ?? making.call.path]),
  }),
  pass,
  rollback: async ({ fs, path, call, log }) => {
    const to = await sequenceOf(fs, path, call.number)
    const until = call.until === 'newer' ? call.until : call.until === 0 ? 'released' : fs.now() + call.until
    const { release, force } = call
    return {
      results: [await rollBack(fs, path, { ...stopped(call), log, to, release, force, pin: { reason: '', until } })],
    }
  },
  hold: async ({ fs, path, call, log }) => {
    const until = typeof call.until === 'number' && call.until > 0 ? fs.now() + call.until : null
    const hold = { since: fs.now(), reason: 'by hand', until }
    return { value: { hold, before: await setHold(fs, path, hold, { ...stopped(call), log }) } }
  },
  release: async ({ fs, path, call, log }) => ({
    value: await setHold(fs, path, undefined, { ...stopped(call), log }),
  }),
  prune: async ({ fs, path, call, log }) => ({
    value: await pruneHistory(fs, path, { keep: call.number, maxAge: null }, { ...stopped(call), log }),
  }),
  move: ({ fs, path, base, call, log }) => following(fs, path, base, call, log),
  endMove: async ({ fs, path, call, log }) => {
    await endRelocation(fs, path, { ...stopped(call), log })
    return {}
  },
  remove: async ({ fs, path, call, log }) => {
    const { release, force } = call
    await removePublished(fs, path, {
      ...{ ...stopped(call), log, release, force },
      confirm: (record) => (force ? undefined : refuseKeptByAgent(path, { record: record as never })),
    })
    return {}
  },
  letGo: async ({ fs, path, call, log }) => ({
    value: await letGo(fs, path, { ...stopped(call), log, agent: call.agent }),
  }),
  hook: async ({ fs, path }) => {
    const { digest } = (await readPublication(fs, path)) ?? {}
    return { value: digest !== undefined && (await completeHook(fs, path, digest, 'reload')) }
  },
  objects: async ({ fs, path, memory }) => {
    const found = await readPublication(fs, path)
    const isSame = found?.objects.length === 1
    const newer = [objectOf(memory.version)]
    return { value: isSame && (await recordObjects(fs, path, found.digest, newer)) ? newer : false }
  },
  takeAway: async ({ fs, path }) => {
    if (kindOf(path) === 'file' || (await readPublication(fs, path))?.hold) throw unfitHere(path)
    const known = await atPlace(fs, path, async ({ anchor, name, missing }, scope) => {
      if (missing.length > 0 || (await fs.look(anchor, name))?.type !== 'directory') throw unfitHere(path)
      return places.knownContent(fs, await scope.keep(fs.openDirectory(anchor, name)))
    })
    return { value: await places.removeTarget(fs, path, known) }
  },
}

/** A rollout, which alone takes away what it has itself put there, does not come to such a path. */
function unfitHere(path: string): DurableWriteError {
  return unfit(`${path} is no tree of a rollout`, { code: 'EINVAL', syscall: 'none', path })
}

function stopped({ wrong }: Call): { signal?: AbortSignal; lockTimeout: number } {
  return { lockTimeout: 0, ...(wrong === 'aborted' && { signal: AbortSignal.abort() }) }
}

function objectOf(version: number): RecordedObject {
  const said = { kind: 'Secret', namespace: 'a', name: 'b', uid: 'c', resourceVersion: `${10 + version}` }
  return { ...said, paths: Object.keys(filesOf(contentOfVersion(version))) }
}

/** What a wrong request asks for beside the rest. */
function wrongs({ wrong }: Call, path: string): Partial<DirectoryRequest & DirectoryPublicationOptions> {
  if (wrong === 'form') return { publish: kindOf(path) === 'links' ? 'exchange' : 'symlink' }
  if (wrong === 'publisher') return { publisher: 'install' }
  const rejected = unfit('the check rejects it', { code: 'EPERM', syscall: 'none', path })
  const check = { accepts: () => undefined, examine: () => Promise.reject(rejected) }
  return wrong === 'rejected' ? { check } : {}
}

async function byHand({ fs, base, call, log }: Making, paths: readonly string[]): Promise<ReplaceResult[]> {
  const { content, release, keepHold, force } = call
  const held: PublicationOptions['held'] = release ? 'release' : keepHold ? 'keep' : 'refuse'
  const nested = call.wrong === 'nested' ? [`${call.path}/inside`] : []
  const publications = [...paths, ...nested].map((relative) => {
    const path = join(base, relative)
    const options = {
      ...{ log, held, lockTimeout: 0 },
      ...(!force && { confirm: (found: Parameters<typeof refuseKeptByAgent>[1]) => refuseKeptByAgent(path, found) }),
    }
    if (kindOf(relative) === 'file') return filePublication(fs, path, `file ${content}\n`, options)
    const broken = call.wrong === 'unreadable' ? { 'broken/key': { path: join(base, 'none') } } : {}
    const files = { ...filesOf(content), ...broken }
    const publishForm = kindOf(relative) === 'links' ? ('symlink' as const) : ('exchange' as const)
    const request = { target: path, files, publish: publishForm, history, hooks: ['reload'] }
    return directoryPublication(fs, { ...request, ...options, ...wrongs(call, path) })
  })
  return resultsOf(await publish(publications, stopped(call).signal))
}

function configurationOf(path: string, from: string | undefined, call: Call): DirectoryConfiguration {
  return {
    ...{ path, place: '', publish: kindOf(path) === 'links' ? 'symlink' : 'exchange', adopt: call.adopt },
    ...{ mode: 0o755, fileMode: 0o600, owner: undefined, attributes: 'set', contents: [], onMissing: 'keep' },
    ...{ onDrop: call.onDrop, retire: 'immediately', retireTimeout: 0, history, validate: [] },
    ...{ debounce: { quiet: 0, atMost: 0 }, minInterval: 0, hookInterval: 0, limits: defaultLimits },
    ...{ beforePublish: [], afterPublish: [] },
    ...(from !== undefined && { movedFrom: { path: from, keep: keepOf(call) } }),
  }
}

/** What fails behind a publication is left to the next comparison. */
async function afterwards({ fs, path, log }: Making, state: DirectoryState): Promise<void> {
  try {
    await compareWithRecord(state, (target) => readPublication(fs, target))
    if (hasOtherMove(state.facts)) await endRelocation(fs, path, { lockTimeout: 0, log })
  } catch (error) {
    log.warn({}, messageOf(error))
  }
}

/** As reconcile.ts: it compares, publishes what the source says where that is due, ends other moves, and follows its own. */
async function pass(making: Making): Promise<Part> {
  const { fs, base, call, memory, path, log } = making
  if (kindOf(call.path) === 'file') throw unfitHere(path)
  const from = call.from === undefined ? undefined : join(base, call.from)
  const configuration = configurationOf(path, from, call)
  const key = `${call.agent} ${call.path}`
  const state = memory.states.get(key) ?? new DirectoryState(configuration)
  memory.states.set(key, state)
  state.happened({ kind: 'configured', configuration })
  const drift = await compareWithRecord(state, (target) => readPublication(fs, target))
  const version = objectOf(memory.version)
  const { desired, intact, record } = state.facts
  const isNews = desired?.objects[0]?.resourceVersion !== version.resourceVersion
  const isHeld = record?.hold !== undefined
  const isAsItMust = drift === undefined && intact && !isNews && !hasOtherMove(state.facts) && !isHeld
  const results: ReplaceResult[] = []
  if (!isAsItMust || call.wrong !== undefined) {
    const objects = [version]
    const files = Object.fromEntries(
      Object.entries(filesOf(contentOfVersion(memory.version))).map(([name, text]) => [
        name,
        { content: Buffer.from(text), mode: 0o600 },
      ]),
    )
    const asked = { requireProven: false, agent: call.agent, release: call.release, lockTimeout: 0, log }
    const rendering = { ready: true, files, objects, warnings: [], certificates: [] } as const
    const request = { ...publicationRequest(configuration, rendering, () => undefined, asked), hooks: ['reload'] }
    const adopt = call.adopt !== false && takeOver({ replace: call.adopt === 'replace' })
    const more = { ...(adopt && { adopt }), ...wrongs(call, path) }
    results.push(...resultsOf(await publish([directoryPublication(fs, { ...request, ...more })], stopped(call).signal)))
    for (const { outcome: change, digest, sequence } of results.slice(0, 1)) {
      const found = { warnings: [], certificates: [], hooks: [], unproven: false }
      state.happened({ kind: 'passed', outcome: { kind: 'published', change, digest, sequence, objects, ...found } })
    }
    await afterwards(making, state)
  }
  const asItWas = { ...(results.length === 0 && { asItWas: true as const }), results }
  if (from === undefined) return asItWas
  // The two paths are two directories of the agent: each has an outcome of its own.
  const moved = await following(fs, path, base, call, log).catch((error: unknown) => ({ moveError: error as Error }))
  return { ...asItWas, ...moved }
}

/** Milliseconds that both paths of a move stay. */
function keepOf({ until }: Call): number {
  return typeof until === 'number' ? until : 0
}

async function following(fs: FileSystem, path: string, base: string, call: Call, log: Log): Promise<Part> {
  if (call.from === undefined) return {}
  const { agent, onDrop } = call
  const publication = { hooks: ['reload'], publisher: 'agent' as const, agent, onDrop }
  const options = { ...stopped(call), from: join(base, call.from), keep: keepOf(call), publication, log }
  return { progress: await relocate(fs, path, options) }
}

/** Of an earlier content, counted from the newest; 0: the default. */
async function sequenceOf(fs: FileSystem, path: string, number: number): Promise<number | undefined> {
  return number === 0 ? undefined : (await readHistory(fs, path))?.[number]?.sequence
}
