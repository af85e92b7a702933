import * as mountTable from '../mountinfo.js'
import { dirname } from 'node:path'
import type { AgentConfiguration, DirectoryConfiguration } from '../config/types.js'
import { codeOf, isSystemError, messageOf } from '../errors.js'
import { namesFor, atPlace, findTarget, fitness, lockAt, otherForm } from '../durable/index.js'
import type { TargetNames, Place, Scope } from '../durable/path/index.js'
import { DurableWriteError } from '../durable/errors.js'
import type { Attributes, Descriptor, FileSystem } from '../durable/file-system.js'
import { checkAccessLists, checkAttributes, checkLabel, type SecurityModule } from './attributes.js'
import type { ProcessCredentials, Ownership } from './capabilities.js'
import { checkPublished } from './certificates.js'
import { findingAdvice, fault, faultOf, ok, warn, type CheckResult } from './findings.js'
import { checkFileSystem, checkFlushes, checkMount, checkSpace, diskUnder } from './mount.js'
import type { Owner } from '../durable/types.js'
import { listed } from '../message-text.js'
import type { FoundTarget } from '../durable/look/index.js'
import type { Records } from '../durable/record/index.js'

export interface DirectoryCheckContext {
  readonly fs: FileSystem
  readonly identity: ProcessCredentials
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
  context: DirectoryCheckContext,
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
      results: [isBare ? fault('path', error.message, findingAdvice(error.code)) : faultOf('path', error)],
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
    private readonly context: DirectoryCheckContext,
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
    try {
      await lockAt(this.scope, this.place, attributes, { timeout, signal })
    } catch (error) {
      return { found: [lockResult(error, path)], ownership: unknown }
    }
    const there = await findTarget(this.scope, this.place, attributes)
    const { opened, records, attributes: of } = there
    const result = checkTarget(there, this.configuration)
    const found = [result, checkLeftovers(records, this.#names), await this.#probe(anchor, opened)]
    found.push(...(await this.#space(opened)), ...(await this.#label(opened)))
    if (opened !== undefined)
      found.push(...(await checkAccessLists(fs, opened, path)), ...checkAttributes(path, opened, anchor))
    return { found, ownership: { path, target: of } }
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
      return [warn('space', `could not measure it: ${messageOf(error)}`, findingAdvice(codeOf(error) ?? ''))]
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
  return fault('target', `could not take its lock: ${messageOf(error)}`, findingAdvice(codeOf(error) ?? ''))
}

/** The directories that hold the target, up to the root: a user who may write to one can put something else in its place. */
async function checkParent(
  fs: FileSystem,
  place: Pick<Place, 'realParent' | 'missing'> & {
    readonly anchor: string
    readonly entry: Awaited<ReturnType<typeof fitness.parentEntry>>
  },
  { uid, groups: [gid = 0] }: ProcessCredentials,
  owner: Owner | undefined,
): Promise<CheckResult> {
  const { anchor, missing, realParent, entry } = place
  const shown = modeAndOwner(entry)
  const found =
    missing.length === 0
      ? `${anchor} has ${shown}`
      : `${realParent} does not exist: holdfast will create it in ${anchor}, which has ${shown}`
  const writer = fitness.writerOf(anchor, entry, { self: { uid, gid }, owner, holds: true })
  const by = writer && `${found}: ${writer.problem}, and so replace the target`
  if (by !== undefined && writer?.isEverybody) return fault('parent', by, writer.advice)
  const open = await writableAncestors(fs, anchor)
  if (open.length > 0) {
    return warn(
      'parent',
      `${found}; everybody may write to ${listed(open)} above it, and could move it away`,
      `chmod o-w ${open[0] ?? ''}`,
    )
  }
  if (writableByWorld(entry)) {
    return warn(
      'parent',
      `${found}: everybody may create files beside the target, such as its lock, and so block publications`,
      'choose a parent that only root may write to',
    )
  }
  return by === undefined ? ok('parent', found) : warn('parent', by, writer?.advice ?? '')
}

/** Whether it can be written to only past its permission bits: with CAP_DAC_OVERRIDE. */
function isPastItsMode(
  { uid, gid, mode }: Pick<Attributes, 'uid' | 'gid' | 'mode'>,
  identity: ProcessCredentials,
): boolean {
  const shift = uid === identity.uid ? 6 : identity.groups.includes(gid) ? 3 : 0
  return ((mode >> shift) & 0o3) !== 0o3
}

async function writableAncestors(fs: FileSystem, path: string): Promise<string[]> {
  const open: string[] = []
  for (let above = path; above !== '/';) {
    above = dirname(above)
    const entry = await fs.lookPath(above)
    if (entry !== undefined && writableByWorld(entry) && (entry.mode & 0o1000) === 0) open.push(above)
  }
  return open
}

function writableByWorld({ mode }: Pick<Attributes, 'mode'>): boolean {
  return (mode & 0o002) !== 0
}

function modeAndOwner({ uid, gid, mode }: Pick<Attributes, 'uid' | 'gid' | 'mode'>): string {
  return `mode 0${mode.toString(8)}, owner ${uid}:${gid}`
}

/** Whether a publication can replace what stands at a target: a directory, on the mount that holds staging too, of the same form, and ours. */
function checkTarget(
  found: FoundTarget,
  { publish, adopt, path }: Pick<DirectoryConfiguration, 'path' | 'publish' | 'adopt'>,
): CheckResult {
  const { records, opened, refusal, isEmpty, form, changedSince } = found
  if (refusal !== undefined) return faultOf('target', refusal)
  if (opened === undefined) return ok('target', 'does not exist yet')
  if (form !== publish && isEmpty !== true)
    return faultOf('target', otherForm(path, form ?? 'exchange', records.valid.length > 0))
  const same = 'a directory on the same mount as its parent, where holdfast stages'
  const isOurs = records.valid.length > 0 && changedSince === undefined
  if (isOurs || isEmpty === true) return ok('target', same)
  const whose =
    changedSince === undefined
      ? 'holdfast did not publish it'
      : `${changedSince}; holdfast takes it over by an adoption`
  if (adopt)
    return warn(
      'target',
      `${same}; ${whose}, and adopt is ${adopt}`,
      `look at what will happen: holdfast adopt ${path} --config FILE --dry-run`,
    )
  return warn(
    'target',
    `${same}; ${whose}, and replaces it only if the new content has every path in it`,
    'set adopt: replace to take it over, or move it away',
  )
}

/** Entries that an interrupted publication has left: the next one removes them, but for another program's files. */
function checkLeftovers({ staging, torn, quarantined, valid }: Records, names: TargetNames): CheckResult {
  if (quarantined.length > 0) {
    return warn(
      'leftovers',
      `${quarantined.length} beside the target, ${some(quarantined.map(names.quarantine))}: another program put it in the target's place while a publication was interrupted`,
      'look at it, then move it to where it belongs, or remove it: holdfast never removes it',
    )
  }
  const retired = new Set(valid.flatMap((record) => (record.retired ?? []).map(({ name }) => name)))
  const staged = staging.map(names.staging)
  const left = [...staged.filter((name) => !retired.has(name)), ...torn.map(names.record)]
  if (left.length === 0) {
    const kept = staged.length === 0 ? 'none' : `none but old content that stays until nobody uses it: ${some(staged)}`
    return ok('leftovers', kept)
  }
  return warn(
    'leftovers',
    `${left.length} beside the target, from an interrupted publication: ${some(left)}`,
    'nothing to do: the next publication removes what is certainly a leftover',
  )
}

function some([first = '', ...more]: readonly string[]): string {
  return first + (more.length > 0 ? ', …' : '')
}
