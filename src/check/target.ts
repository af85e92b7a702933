import type { DirectoryConfiguration } from '../config/types.js'
import type { Standing } from '../durable/look/index.js'
import type { TargetNames } from '../durable/path/index.js'
import type { Records } from '../durable/record/index.js'
import { fault, faultOf, ok, warn, type CheckResult } from './findings.js'

/** Whether a publication can replace what stands at a target: a directory, on the mount that holds staging too, of the same form, and ours. */
export function checkTarget(
  standing: Standing,
  { publish, adopt, path }: Pick<DirectoryConfiguration, 'path' | 'publish' | 'adopt'>,
): CheckResult {
  const { records, opened, refusal, isEmpty, form, changedSince } = standing
  if (refusal !== undefined) return faultOf('target', refusal)
  if (opened === undefined) return ok('target', 'does not exist yet')
  if (form !== publish && isEmpty !== true) {
    return fault(
      'target',
      `has the form "${form}", but the configuration says publish: ${publish}; another form would break its readers`,
      `configure publish: ${form === 'file' ? 'exchange' : form}, or remove ${path} first`,
    )
  }
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
