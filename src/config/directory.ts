import { reportContentConflicts } from './content-conflicts.js'
import { readContent } from './contents.js'
import { readContentChecks, readHooks } from './hooks.js'
import { readDuration } from './duration.js'
import type { NamespaceDefault } from './object-names.js'
import { readDirectoryMode, readFileMode, readOwner } from './ownership.js'
import { readNodePath } from './paths.js'
import { publishForms, type PublishForm } from './publish-form.js'
import type { DirectoryConfiguration } from './types.js'
import { validations } from './validation.js'
import type { MappingValue, Value } from './value.js'

const fields = [
  'path',
  'publish',
  'adopt',
  'mode',
  'fileMode',
  'owner',
  'attributes',
  'contents',
  'onMissing',
  'retire',
  'retireTimeout',
  'history',
  'historyMaxAge',
  'validate',
  'beforePublish',
  'afterPublish',
]
const misplaced = {
  secret: 'it belongs to one of contents',
  configMap: 'it belongs to one of contents',
  secrets: 'it belongs to one of contents',
  configMaps: 'it belongs to one of contents',
  items: 'it belongs to one of contents',
  into: 'it belongs to one of contents',
  optional: 'it belongs to one of contents',
  defaultMode: 'did you mean "fileMode"?',
  namespace: 'it belongs to source, or to a name as NAMESPACE/NAME',
}

export interface ReadDirectory {
  readonly configuration: DirectoryConfiguration
  /** Where the target's path is written. */
  readonly at: Value
}

/** Reads one of `directories`; undefined where it has no usable path. `base`: where relative paths start. */
export function readDirectory(value: Value, base: string, defaults: NamespaceDefault): ReadDirectory | undefined {
  const directory = value.mapping(fields, misplaced)
  if (directory === undefined) return undefined
  const at = directory.required('path', '/etc/kubernetes/certs')
  const path = at && readNodePath(at, base)
  const publish = directory.field('publish')?.oneOf(Object.keys(publishForms) as PublishForm[]) ?? 'exchange'
  const contents = directory
    .required('contents', '[{ secret: NAME }]')
    ?.list()
    .map((content) => readContent(content, defaults))
    .filter((content) => content !== undefined)
  reportContentConflicts(contents ?? [], publish, publishForms[publish].reservesDots)
  const configuration = {
    place: value.place,
    publish,
    adopt: directory.field('adopt')?.boolean() ?? false,
    ...readOwnership(directory),
    attributes: directory.field('attributes')?.oneOf(['set', 'keep'] as const) ?? 'set',
    contents: contents?.map(({ content }) => content) ?? [],
    onMissing: directory.field('onMissing')?.oneOf(['keep', 'remove'] as const) ?? 'keep',
    ...readRetirement(directory, publish),
    history: readHistory(directory, publish),
    validate: listOr(directory, 'validate', readValidations),
    beforePublish: listOr(directory, 'beforePublish', readContentChecks),
    afterPublish: listOr(directory, 'afterPublish', readHooks),
  }
  return path === undefined || at === undefined ? undefined : { configuration: { path, ...configuration }, at }
}

function readOwnership(directory: MappingValue): Pick<DirectoryConfiguration, 'mode' | 'fileMode' | 'owner'> {
  const mode = directory.field('mode')
  const fileMode = directory.field('fileMode')
  const owner = directory.field('owner')
  return {
    mode: (mode && readDirectoryMode(mode)) ?? 0o755,
    fileMode: (fileMode && readFileMode(fileMode)) ?? 0o600,
    owner: owner && readOwner(owner),
  }
}

/** Milliseconds: without a view of all processes, old private keys would else stay for ever. */
const defaultRetireTimeout = 3_600_000

function readRetirement(
  directory: MappingValue,
  publish: PublishForm,
): Pick<DirectoryConfiguration, 'retire' | 'retireTimeout'> {
  const value = directory.field('retire')
  const retire = value?.oneOf(['immediately', 'whenUnused'] as const) ?? 'immediately'
  const timeout = directory.field('retireTimeout')
  const retireTimeout = timeout && readDuration(timeout, { least: '1s', most: '720h' })
  if (retire === 'whenUnused' && publish === 'symlink') {
    value?.wrong('whenUnused is only for publish: exchange', 'leave out retire, or publish')
  }
  if (timeout !== undefined && retire !== 'whenUnused') {
    timeout.wrong('retireTimeout has no effect without retire: whenUnused', 'add retire: whenUnused, or leave it out')
  }
  return { retire, retireTimeout: retireTimeout ?? defaultRetireTimeout }
}

/** Each of them is a copy of private keys. */
const longestHistory = 100

function readHistory(directory: MappingValue, publish: PublishForm): DirectoryConfiguration['history'] {
  const value = directory.field('history')
  const keep = value?.integer(0, longestHistory) ?? 0
  const age = directory.field('historyMaxAge')
  const maxAge = age && readDuration(age, { least: '1s', most: '87600h' })
  if (keep > 0 && publish === 'symlink') {
    value?.wrong('history is only for publish: exchange', 'leave out history, or publish')
  }
  if (age !== undefined && keep === 0)
    age.wrong('historyMaxAge has no effect without history', 'add history: 3, or leave it out')
  return { keep, maxAge: maxAge ?? null }
}

function readValidations(value: Value): DirectoryConfiguration['validate'] {
  const checks = value.list().map((check) => check.oneOf(validations))
  return [...new Set(checks.filter((check) => check !== undefined))]
}

/** An empty list says in so many words that there is none. */
function listOr<T>(directory: MappingValue, name: string, read: (value: Value) => readonly T[]): readonly T[] {
  const value = directory.field(name)
  return value === undefined || isEmptyList(value) ? [] : read(value)
}

function isEmptyList({ node }: Value): boolean {
  return node.kind === 'list' && node.items.length === 0
}
