import { duration, parseDuration } from './duration.js'
import { type Fields, mappingOf, needs, neverBoth, type ValueType } from './field.js'
import { referencesOf, selectionsOf } from './references.js'
import { type Content, type Debounce, type DirectoryConfiguration, type PublishForm, publishForms } from './types.js'
import { reportContentConflicts } from './content-conflicts.js'
import { content } from './contents.js'
import { contentChecks, hooks } from './hooks.js'
import { defaultLimits, limits } from './limits.js'
import type { NamespaceDefault } from './object-names.js'
import { directoryMode, fileMode, owner } from './ownership.js'
import type { PathContext } from './paths.js'
import { targetPath } from './target-path.js'
import { validation, type Validation } from './validation.js'
import { booleanOr, integer, listOf, made, oneOf } from './value-types.js'
import type { Value } from './value.js'

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

function eachOnce(validations: readonly Validation[]): readonly Validation[] {
  return [...new Map(validations.map((one) => [JSON.stringify(one), one])).values()]
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
        schema: needs('retireTimeout', { retire: { const: 'whenUnused' } }),
      },
      {
        check: ({ read: { history }, at }) => {
          if (history === 0)
            at.historyMaxAge?.wrong('historyMaxAge has no effect without history', 'add history: 3, or leave it out')
        },
        schema: needs('historyMaxAge', { history: { minimum: 1 } }),
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
