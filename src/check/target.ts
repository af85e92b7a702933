import type { DirectoryConfiguration } from '../config/types.js'
import {
  letGoSince,
  letGoText,
  openTarget,
  readPublication,
  refuseOtherThanDirectory,
  dataLink,
} from '../durable/index.js'
import type { TargetNames } from '../durable/path/index.js'
import type { Records } from '../durable/record/index.js'
import type { Attributes, Descriptor, FileSystem } from '../durable/file-system.js'
import { fault, faultOf, ok, warn, type CheckResult } from './findings.js'

export interface TargetLook {
  readonly fs: FileSystem
  readonly configuration: Pick<DirectoryConfiguration, 'path' | 'publish' | 'adopt'>
  readonly name: string
  readonly parent: Descriptor
  readonly parentAttributes: Attributes
  readonly parentMount: number
  readonly records: Records
}

/** The target, open, where it is a directory that can be replaced. */
export interface Target {
  readonly result: CheckResult
  readonly attributes?: Attributes
  /** To be closed by the caller. */
  readonly opened?: Descriptor
}

/** Whether what is there can be replaced: a directory, on the mount that holds staging too, of the same form, and ours. */
export async function lookAtTarget(look: TargetLook): Promise<Target> {
  const { fs, configuration, parent, name } = look
  const { path } = configuration
  const attributes = await fs.look(parent, name)
  if (attributes === undefined) return { result: ok('target', 'does not exist yet') }
  let opened: Descriptor
  try {
    refuseOtherThanDirectory(path, attributes)
    opened = await openTarget(fs, path, parent, name, look.parentAttributes.device)
  } catch (error) {
    return { result: faultOf('target', error) }
  }
  try {
    return { result: await checkForm(look, opened), attributes, opened }
  } catch (error) {
    await fs.close(opened)
    throw error
  }
}

async function checkForm({ fs, configuration, records }: TargetLook, opened: Descriptor): Promise<CheckResult> {
  const { publish, adopt, path } = configuration
  const entries = await fs.list(opened)
  const [newest] = records.valid
  const linked = (await fs.look(opened, dataLink))?.type === 'symlink'
  const form = newest?.kind ?? (linked ? 'symlink' : 'exchange')
  if (form !== publish && entries.length > 0) {
    return fault(
      'target',
      `has the form "${form}", but the configuration says publish: ${publish}; another form would break its readers`,
      `configure publish: ${form === 'file' ? 'exchange' : form}, or remove ${path} first`,
    )
  }
  const same = 'a directory on the same mount as its parent, where holdfast stages'
  const since = newest && letGoSince(newest)
  const hasChanged = since !== undefined && (await isChanged(path))
  if ((newest !== undefined && !hasChanged) || entries.length === 0) return ok('target', same)
  const whose = hasChanged
    ? `${letGoText('it', since)} and has changed since; holdfast takes it over by an adoption`
    : 'holdfast did not publish it'
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

async function isChanged(path: string): Promise<boolean> {
  const publication = await readPublication(path)
  return publication === undefined || publication.differences.length > 0
}

/** What a publication that was cut short has left: the next one removes it, but for what is somebody else's. */
export function checkLeftovers({ staging, torn, quarantined, valid }: Records, names: TargetNames): CheckResult {
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
