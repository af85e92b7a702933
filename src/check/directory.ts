import type { AgentConfiguration, DirectoryConfiguration } from '../config/types.js'
import { codeOf, isSystemError, messageOf } from '../errors.js'
import * as mountTable from '../mountinfo.js'
import { namesFor, atPlace, fitness, standing } from '../durable/index.js'
import type { TargetNames, Place } from '../durable/path/index.js'
import { DurableWriteError } from '../durable/errors.js'
import type { Attributes, Descriptor, FileSystem } from '../durable/file-system.js'
import type { Scope } from '../durable/path/index.js'
import { checkAccessLists, checkAttributes, checkLabel, type SecurityModule } from './attributes.js'
import type { Identity, Ownership } from './capabilities.js'
import { checkPublished } from './certificates.js'
import { adviceOn, fault, faultOf, ok, warn, type CheckResult } from './findings.js'
import { checkFileSystem, checkFlushes, checkMount, checkSpace, diskUnder } from './mount.js'
import { isPastItsMode, checkParent } from './parents.js'
import { checkLeftovers, checkTarget } from './target.js'

export interface DirectoryContext {
  readonly fs: FileSystem
  readonly identity: Identity
  /** undefined: SELinux is off. */
  readonly selinux: SecurityModule | undefined
  readonly requireProven: AgentConfiguration['requireProven']
  readonly now: Date
  /** Milliseconds to wait for another process that holds the target's lock. */
  readonly lockTimeout: number
  readonly signal: AbortSignal
}

export interface DirectoryReport {
  readonly results: readonly CheckResult[]
  readonly ownership: Ownership
  /** Type of the file system that the target is on, or will be on; undefined where that is not known. */
  readonly fileSystem: string | undefined
}

/** Checks everything about one directory. A reason for which a publication would refuse is a fault here, in the same words. */
export async function checkDirectory(
  configuration: DirectoryConfiguration,
  context: DirectoryContext,
): Promise<DirectoryReport> {
  const { path } = configuration
  try {
    return await atPlace(context.fs, path, (place, scope) =>
      new DirectoryCheck(configuration, context, scope, place).run(),
    )
  } catch (error) {
    const ownership = { path, target: undefined, overridesParent: false }
    const isBare = isSystemError(error) && !(error instanceof DurableWriteError)
    return {
      results: [isBare ? fault('path', error.message, adviceOn(error.code)) : faultOf('path', error)],
      ownership,
      fileSystem: undefined,
    }
  }
}

class DirectoryCheck {
  readonly #names: TargetNames
  readonly #anchorPath: string

  constructor(
    private readonly configuration: DirectoryConfiguration,
    private readonly context: DirectoryContext,
    private readonly scope: Scope,
    private readonly place: Place,
  ) {
    this.#names = namesFor(place.name)
    const depth = place.missing.length
    const parts = place.realParent.split('/')
    this.#anchorPath = parts.slice(0, parts.length - depth).join('/') || '/'
  }

  async run(): Promise<DirectoryReport> {
    const { context, place, configuration } = this
    const { fs } = context
    const { anchor } = place
    const mount = await fs.mount(anchor)
    const details = mountTable.mountDetails(mount.id)
    const attributes = await fs.attributes(anchor)
    const overridesParent = isPastItsMode(attributes, context.identity)
    const results: CheckResult[] = []
    if (details !== undefined) {
      const flushes = checkFlushes(details, diskUnder(details))
      results.push(
        checkMount(details, configuration.path),
        checkFileSystem(details, { proven: mount.proven, hasBirth: attributes.birth !== 0n }, context.requireProven),
      )
      if (flushes !== undefined) results.push(flushes)
    }
    const parent = { ...place, anchor: this.#anchorPath, entry: await fitness.parentEntry(fs, anchor, attributes) }
    results.push(await checkParent(fs, parent, context.identity, configuration.owner))
    const { found, ownership } = await this.#lockedLook(attributes)
    results.push(...found)
    const clock = await checkPublished(configuration.path, context.now)
    if (clock !== undefined) results.push(clock)
    return { results, fileSystem: mount.type, ownership: { ...ownership, overridesParent } }
  }

  /** Takes the directory's lock, where there is one, to look at all that a publication could change; it makes no lock file. */
  async #lockedLook(
    attributes: Attributes,
  ): Promise<{ found: CheckResult[]; ownership: Omit<Ownership, 'overridesParent'> }> {
    const { fs, lockTimeout: timeout, signal } = this.context
    const { anchor, missing } = this.place
    const { path } = this.configuration
    const unknown = { path, target: undefined }
    if (missing.length > 0) {
      const found = [ok('target', 'does not exist yet'), await this.#probe(anchor)]
      return {
        found: [...found, ...(await this.#space(undefined)), ...(await this.#label(undefined))],
        ownership: unknown,
      }
    }
    let release: (() => void) | undefined
    try {
      release = await standing.lockAt(this.scope, this.place, attributes, { timeout, signal })
    } catch (error) {
      return { found: [lockResult(error, path)], ownership: unknown }
    }
    try {
      const there = await standing.read(this.scope, this.place, attributes)
      const { opened, records, attributes: of } = there
      const result = checkTarget(there, this.configuration)
      const found = [result, checkLeftovers(records, this.#names), await this.#probe(anchor, opened)]
      found.push(...(await this.#space(opened)), ...(await this.#label(opened)))
      if (opened !== undefined)
        found.push(...(await checkAccessLists(fs, opened, path)), ...checkAttributes(path, opened, anchor))
      return { found, ownership: { path, target: of } }
    } finally {
      release?.()
    }
  }

  async #probe(parent: Descriptor, target?: Descriptor): Promise<CheckResult> {
    const { path, publish } = this.configuration
    const { fs } = this.context
    const fixed = target === undefined ? undefined : await fitness.immovableProblem(fs, path, target, publish)
    const found = fixed ?? (await fitness.exchangeProblem(fs, path, parent, this.#names))
    if (found) return fault('exchange', found.problem, found.advice)
    return ok('exchange', 'two directories beside the target changed places in one step')
  }

  async #space(target: Descriptor | undefined): Promise<CheckResult[]> {
    const { fs } = this.context
    try {
      const free = await fs.free(this.place.anchor)
      const used = target === undefined ? undefined : await fitness.usageOf(fs, target, free.blockSize)
      return checkSpace(free, used)
    } catch (error) {
      return [warn('space', `could not measure it: ${messageOf(error)}`, adviceOn(codeOf(error) ?? ''))]
    }
  }

  async #label(target: Descriptor | undefined): Promise<CheckResult[]> {
    const { fs, selinux } = this.context
    if (selinux === undefined) return []
    const labels = {
      parent: await fs.label(this.place.anchor),
      target: target === undefined ? undefined : await fs.label(target),
    }
    return [checkLabel(selinux, labels)]
  }
}

function lockResult(error: unknown, path: string): CheckResult {
  if (error instanceof DurableWriteError && error.reason === 'Busy') {
    return warn(
      'target',
      `another process holds the lock of ${path}: the target and the exchange were not checked`,
      'check again when that process is done',
    )
  }
  if (error instanceof DurableWriteError) return faultOf('target', error)
  return fault('target', `could not take its lock: ${messageOf(error)}`, adviceOn(codeOf(error) ?? ''))
}
