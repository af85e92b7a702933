import { basename } from 'node:path'
import { parseDuration } from './duration.js'
import { type Fields, mappingOf, onlyWhere, neverBoth, type ValueType } from './field.js'
import { referencesOf, selectionsOf } from './references.js'
import {
  type Content,
  type Debounce,
  type DirectoryConfiguration,
  type PublishForm,
  publishForms,
  type Limits,
  type Validation,
  validations,
} from './types.js'
import { reportContentConflicts, content } from './contents.js'
import { contentChecks, hooks } from './hooks.js'
import { type NamespaceDefault, dataKey } from './object-names.js'
import { directoryMode, fileMode, owner } from './ownership.js'
import { type PathContext, except, isWithin, nodePath } from './paths.js'
import { booleanOr, duration, integer, listOf, made, oneOf, textType } from './value-types.js'
import type { Value } from './value.js'
import { mostMembers } from '../kubernetes-names.js'
import { quote } from '../message-text.js'

/** Directories that hold more than one program's files: to replace one of them would take the others' away. */
const systemDirectories = new Set(
  `/ /bin /boot /etc /home /lib /lib32 /lib64 /libx32 /media /mnt /opt /root /run /sbin /srv /tmp /usr /var
  /usr/bin /usr/include /usr/lib /usr/lib32 /usr/lib64 /usr/libexec /usr/local /usr/local/bin /usr/local/etc
  /usr/local/lib /usr/local/sbin /usr/local/share /usr/sbin /usr/share /var/cache /var/lib /var/lib/kubelet
  /var/local /var/lock /var/log /var/mail /var/opt /var/run /var/spool /var/tmp
  /etc/kubernetes /etc/ssl /etc/ssl/certs /etc/ssl/private /etc/pki /etc/systemd /etc/systemd/system`.split(/\s+/),
)

/** The kernel's own file systems, at every depth. */
const kernelDirectories = ['/dev', '/proc', '/sys']

/** kubelet's inotify watch follows the old directory, and would see no manifest again. Source: pkg/kubelet/config/file_linux.go. */
const manifestDirectory = '/etc/kubernetes/manifests'

/** How the names of holdfast's own files start. */
const ownPrefix = '.holdfast-'

/** The path of a target. A schema refuses the unfit ones as people write them; with detours, only reportTargetProblems does. */
const targetPath: ValueType<string, PathContext> = {
  read: nodePath.read,
  schema: () => {
    const { allOf, ...schema } = nodePath.schema()
    const unfit = [...systemDirectories, manifestDirectory].filter((directory) => directory !== '/')
    const more = except(
      schema,
      `^(?:${unfit.join('|')})?/?$`,
      `^(?:${kernelDirectories.join('|')})(?:/(?!\\.)[^/]*)*$`,
      `(?:^|/)${ownPrefix.replace('.', '\\.')}[^/]*/?$`,
    )
    return { ...more, allOf: [allOf ?? [], more['allOf'] ?? []].flat() }
  },
}

const words: ValueType<Validation> = oneOf(validations)
const bundle: ValueType<Validation> = mappingOf(
  {
    fields: {
      bundle: { type: dataKey, description: 'a key that must hold at least one certificate', required: 'ca.crt' },
    },
  },
  ({ read }) => (read.bundle === undefined ? undefined : { bundle: read.bundle }),
)

/** One of `validate`. */
const validation: ValueType<Validation> = {
  read: (value, context) => {
    const { node } = value
    if (node.kind === 'scalar' && node.value === 'bundle')
      return value.wrong('bundle needs a key', 'write bundle: ca.crt')
    return (node.kind === 'mapping' ? bundle : words).read(value, context)
  },
  schema: () => ({ anyOf: [words.schema(), bundle.schema()] }),
}

const units: Readonly<Record<string, number>> = { Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3 }
const grammar = /^([1-9][0-9]{0,6})(Ki|Mi|Gi)$/

const size: ValueType<number> = textType(
  {
    example: '64Mi',
    schema: () => ({ type: 'string', pattern: grammar.source }),
    ofNumber: (_, source, value) => value.wrong(`${source} has no unit`, `write as in ${quote('64Mi')}`),
  },
  (text, value) => {
    const [, digits, unit = ''] = grammar.exec(text) ?? []
    if (digits === undefined) return value.wrong(`${quote(text)} is not a size`, 'write as in "64Mi", "512Ki", "1Gi"')
    return Number(digits) * (units[unit] ?? NaN)
  },
)

const limitFields = {
  keys: {
    type: integer(1, mostMembers),
    description: 'keys of one object',
    default: 4_096,
  },
  files: {
    type: integer(1, 1_000_000),
    description: 'files of the directory',
    default: 16_384,
  },
  bytes: {
    type: size,
    description: 'of its objects together: names and values of their keys, and 256 bytes for each',
    default: '64Mi',
  },
} satisfies Fields<unknown>

const limits: ValueType<Limits> = mappingOf({ fields: limitFields }, ({ read }) => read)

/** Without the field. @internal */
export const defaultLimits: Limits = { keys: 4_096, files: 16_384, bytes: 64 * 1024 ** 2 }

/** `debounce`, the time that the agent waits for what changes together, of more than one object. */
const severalObjects = { quiet: '100ms', atMost: '5s' }

const debounceFields = {
  quiet: {
    type: duration({ least: '0s', most: '1h' }),
    description: 'the agent publishes once no object of the directory has changed for this time; 0s: at once',
    default: severalObjects.quiet,
  },
  atMost: {
    type: duration({ least: '0s', most: '1h' }),
    description: 'the longest time that a change waits for others',
    default: severalObjects.atMost,
  },
} satisfies Fields<unknown>

const debounce: ValueType<Debounce> = mappingOf(
  { fields: debounceFields },
  ({ read: { quiet, atMost }, at }, value) => {
    if (quiet <= atMost) return { quiet, atMost }
    const given = at.quiet ?? at.atMost ?? value
    return given.wrong(
      `quiet (${quiet}ms) is longer than atMost (${atMost}ms)`,
      'write a longer atMost, or a shorter quiet',
    )
  },
)

/**
 * Without the field: objects of one directory may belong together, and one by itself has nothing to wait for.
 * @internal
 */
export function debounceFor(contents: readonly Content[]): Debounce {
  const directory = { contents }
  const isOne = selectionsOf(directory).length === 0 && referencesOf(directory).length <= 1
  const milliseconds = (written: string) => (isOne ? 0 : (parseDuration(written) ?? 0))
  return { quiet: milliseconds(severalObjects.quiet), atMost: milliseconds(severalObjects.atMost) }
}

/** The readers of a directory's fields need these values from outside it. */
export interface DirectoryContext extends PathContext, NamespaceDefault {}

/** Each of them is a copy of private keys. */
const longestHistory = 100

function eachOnce(all: readonly Validation[]): readonly Validation[] {
  return [...new Map(all.map((one) => [JSON.stringify(one), one])).values()]
}

const fields = {
  path: {
    type: targetPath,
    description: 'the directory that holdfast replaces in one step; consumers mount its parent',
    required: '/etc/kubernetes/certs',
  },
  publish: {
    type: oneOf(Object.keys(publishForms) as PublishForm[]),
    description:
      "symlink: the directory stays, and `..data` in it changes, as in kubelet's volumes: for consumers that mount the directory itself",
    default: 'exchange',
  },
  adopt: {
    type: booleanOr(['replace']),
    description:
      'whether holdfast may take over a directory that it did not publish; replace: even one that holds what the new content does not have',
    default: false,
  },
  mode: { type: directoryMode, description: 'of the directory and its subdirectories', default: '0755' },
  fileMode: { type: fileMode, description: 'of files whose item has no mode', default: '0600' },
  owner: { type: owner, description: "in numbers: a container's passwd is not the host's; default: who runs holdfast" },
  attributes: {
    type: oneOf(['set', 'keep']),
    description: 'keep: mode and owner of what is there stay; `mode` and `owner` are then for a new directory',
    default: 'set',
  },
  contents: {
    type: listOf(content),
    description: 'what the directory holds; holdfast publishes all of it together, or nothing',
    required: '[{ secret: NAME }]',
  },
  onMissing: {
    type: oneOf(['keep', 'remove']),
    description: 'what happens to the files of an optional object that has vanished',
    default: 'keep',
  },
  onDrop: {
    type: oneOf(['keep', 'remove']),
    description:
      'what becomes of the directory once the configuration does not name it any more; remove: it goes after 10 minutes, once nobody uses it',
    default: 'keep',
  },
  retire: {
    type: oneOf(['immediately', 'whenUnused']),
    description: 'when the content that a publication has replaced goes; whenUnused: once no process uses it',
    default: 'immediately',
  },
  // Without a view of all processes, old private keys would else stay for ever.
  retireTimeout: {
    type: duration({ least: '1s', most: '720h' }),
    description: 'with `retire: whenUnused`: after this time the next look removes it in any case',
    default: '1h',
  },
  history: {
    type: integer(0, longestHistory),
    description: 'how many earlier contents stay beside the directory',
    default: 0,
  },
  historyMaxAge: {
    type: duration({ least: '1s', most: '87600h' }),
    description: 'with `history`: an earlier content goes when this time has passed since it was replaced',
  },
  movedFrom: {
    type: targetPath,
    description: 'the path where all of this was before; it is kept up to date, too, until no process uses it',
  },
  // Programs that only open a file now and then are not seen to use it.
  movedFromKeep: {
    type: duration({ least: '1s', most: '8760h' }),
    description: 'with `movedFrom`: how long the old path stays at least',
    default: '10m',
  },
  debounce: {
    type: debounce,
    description:
      'the agent publishes together what changes together: once nothing has changed for `quiet`, and `atMost` after the first change; default: `{ quiet: 100ms, atMost: 5s }` for several objects, none for one',
  },
  minInterval: {
    type: duration({ least: '0s', most: '24h' }),
    description:
      'the time between two publications of changes by the agent, on average; five may follow at once after a pause',
    default: '1s',
  },
  hookInterval: {
    type: duration({ least: '0s', most: '24h' }),
    description:
      'the time between two runs of a hook by the agent for new publications; it runs for the newest one at the end',
    default: '10s',
  },
  limits: {
    type: limits,
    description:
      'what its objects may cost: beyond it, nothing of the directory is published; default: `{ keys: 4096, files: 16384, bytes: 64Mi }`',
  },
  validate: {
    type: made(listOf(validation, { mayBeEmpty: true }), eachOnce),
    description:
      'certificates: a Secret with `tls.crt` or `tls.key` must hold both, they must parse and match, every CERTIFICATE block must parse, and a file that held certificates and is empty now makes a warning; `bundle: KEY`: each file, and each part of a `combine`, of this key must hold at least one certificate, in PEM, and every certificate must parse',
    default: [],
  },
  beforePublish: {
    type: contentChecks,
    description: 'commands that examine new content before it is published, in order',
    default: [],
  },
  afterPublish: {
    type: hooks,
    description: 'hooks, in order; each runs at least once after the newest publication, once it is durable',
    default: [],
  },
} satisfies Fields<DirectoryContext>

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
  movedFromAs: 'leave it out: nothing stays at the old path; who needs a link there makes it once the move is done',
}

export interface ReadDirectory {
  readonly configuration: DirectoryConfiguration
  /** Where the target's path is written. */
  readonly at: Value
  /** Where its old path is. */
  readonly movedFromAt: Value | undefined
}

/** One of `directories`; undefined where it has no usable path. */
export const directory: ValueType<ReadDirectory, DirectoryContext> = mappingOf(
  {
    fields,
    misplaced,
    rules: [
      {
        check: ({ read: { retire, publish }, at }) => {
          if (retire === 'whenUnused' && publish === 'symlink')
            at.retire?.wrong('whenUnused is only for publish: exchange', 'leave out retire, or publish')
        },
        schema: neverBoth({ publish: { const: 'symlink' }, retire: { const: 'whenUnused' } }),
      },
      {
        check: ({ read: { retire }, at }) => {
          if (retire === 'whenUnused') return
          at.retireTimeout?.wrong(
            'retireTimeout has no effect without retire: whenUnused',
            'add retire: whenUnused, or leave it out',
          )
        },
        schema: onlyWhere('retireTimeout', { retire: { const: 'whenUnused' } }),
      },
      {
        check: ({ read: { history }, at }) => {
          if (history === 0)
            at.historyMaxAge?.wrong('historyMaxAge has no effect without history', 'add history: 3, or leave it out')
        },
        schema: onlyWhere('historyMaxAge', { history: { minimum: 1 } }),
      },
      {
        check: ({ at, wasGiven }) => {
          if (wasGiven('movedFrom')) return
          at.movedFromKeep?.wrong(
            'movedFromKeep has no effect without movedFrom',
            'add movedFrom: /old/path, or leave it out',
          )
        },
        schema: { dependencies: { movedFromKeep: ['movedFrom'] } },
      },
    ],
  },
  ({ read, at }, { place }) => {
    const {
      path,
      publish,
      contents: found = [],
      owner,
      history,
      historyMaxAge,
      movedFrom,
      movedFromKeep,
      debounce,
      limits,
      ...others
    } = read
    const contents = found.map(({ content }) => content)
    reportContentConflicts(found, publish, publishForms[publish].reservesDots)
    if (path === undefined || at.path === undefined) return undefined
    const configuration = {
      ...others,
      path,
      place,
      publish,
      owner,
      contents,
      debounce: debounce ?? debounceFor(contents),
      limits: limits ?? defaultLimits,
      history: { keep: history, maxAge: historyMaxAge ?? null },
      ...(movedFrom !== undefined && { movedFrom: { path: movedFrom, keep: movedFromKeep } }),
    }
    return { configuration, at: at.path, movedFromAt: at.movedFrom }
  },
)

/** Reports a path that no target can have, and answers whether it did. */
export function reportUnfitTarget(at: Value, path: string): boolean {
  const kernel = kernelDirectories.find((directory) => isWithin(path, directory))
  if (kernel !== undefined) {
    at.wrong(`${quote(path)} is in ${kernel}, which keeps nothing`, 'name a directory on a disk')
  } else if (systemDirectories.has(path)) {
    at.wrong(`${quote(path)} is a system directory`, 'name a directory of its own below it')
  } else if (path === manifestDirectory) {
    at.wrong(
      `${quote(path)} is watched by kubelet, which would not notice that the directory was replaced`,
      'publish beside it',
    )
  } else if (basename(path).startsWith(ownPrefix)) {
    at.wrong(`${quote(path)} has a name that holdfast reserves for its own files`, 'choose another name')
  } else return false
  return true
}
