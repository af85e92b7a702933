/** Reads `afterPublish` and `beforePublish`. A hook's URL, path, query and arguments may hold secrets: they are in no message and in no name. */
import { createHash } from 'node:crypto'
import { mappingOf, type Field, type Fields, type ValueType } from './field.js'
import {
  policyFields,
  exec,
  http,
  signal,
  type ExecSettings,
  type HttpSettings,
  type SignalSettings,
  staticPod,
  systemd,
  type StaticPodSettings,
  type SystemdSettings,
} from './hook-kinds.js'
import { duration, listOf, made } from './value-types.js'

/** The settings of each type of hook. A new type starts here: the compiler then names each place that lacks it. */
interface HookSettings {
  readonly signal: SignalSettings
  readonly exec: ExecSettings
  readonly http: HttpSettings
  readonly systemd: SystemdSettings
  readonly staticPod: StaticPodSettings
}

export type HookType = keyof HookSettings

/** A hook of one type; without one, of any. */
export type Hook<Type extends HookType = HookType> = {
  [Each in Type]: HookPolicy & { readonly type: Each } & HookSettings[Each]
}[Type]

interface HookPolicy {
  /**
   * The hook's name in the record: a digest of its settings, so that a restart finds it again in any place of the list, and never takes
   * another hook for it.
   */
  readonly key: string
  /** Its name in logs, metrics and status: `signal SIGHUP /run/x.pid`, `exec systemctl #2`, `http 127.0.0.1:9000`. */
  readonly name: string
  /** Where it stands in the file: `directories[0].afterPublish[1]`. */
  readonly place: string
  /** Milliseconds for one try. */
  readonly timeout: number
  /** Further tries after the first. */
  readonly retries: number
  /** Milliseconds within which the nodes of a cluster run it, each at its own time. */
  readonly jitter: number
}

/** A type of hook with its settings. */
type ChosenHook<Type extends HookType> = {
  [Each in Type]: { readonly type: Each; readonly read: HookSettings[Each] & { readonly name: string } }
}[Type]

/** Its type reads the settings, and makes the hook's name for people, which holds no secret. */
interface HookReader<Type extends HookType> extends Field<HookSettings[Type] & { readonly name: string }> {
  /** The hook's action, without its patience: another hook of the type has another identity. */
  readonly identity: (settings: HookSettings[Type]) => readonly string[]
}

const readers: { readonly [Type in HookType]: HookReader<Type> } = {
  signal: {
    type: signal,
    description: 'sends a signal to the process whose number a file holds',
    identity: ({ signal, pidFile }) => [signal, pidFile],
  },
  exec: {
    type: exec,
    description: 'runs a program without a shell: an absolute path, or a name without a slash, and its arguments',
    identity: ({ command }) => command,
  },
  http: {
    type: http,
    description: 'sends one request; a status of 2xx is success',
    identity: ({ method, url }) => [method, url],
  },
  systemd: {
    type: systemd,
    description: 'asks systemd over its bus, and waits until the job has ended',
    identity: ({ unit, action, socket }) => [unit, action, socket],
  },
  staticPod: {
    type: staticPod,
    description: 'has kubelet restart a static pod, once for one content',
    identity: ({ pod, manifestDirectory, lockFile = '' }) => [pod, manifestDirectory, lockFile],
  },
}

const types = Object.keys(readers) as HookType[]
/** Stands for the directory that is checked. */
const directoryPlaceholder = '{dir}'

/**
 * The hooks of one directory. Their names are unique, for people: `exec systemctl`, `exec systemctl #2`, in the order of the file.
 * Their keys are unique too, and stay the same however the list around them is edited.
 */
export const hooks: ValueType<readonly Hook[]> = made(
  listOf(
    mappingOf(
      { fields: policyFields, choices: readers },
      ({ read: { jitter = 0, ...patience } }, { place }, _, chosen) =>
        chosen && hookOf(chosen, { ...patience, jitter, place }),
    ),
    { mayBeEmpty: true },
  ),
  numberedHooks,
)

function numberedHooks<Type extends HookType>(read: readonly (Hook<Type> | undefined)[]): Hook<Type>[] {
  const names = new Map<string, number>()
  const keys = new Map<string, number>()
  return read
    .filter((hook) => hook !== undefined)
    .map((hook) => ({ ...hook, key: numbered(keys, hook.key), name: numbered(names, hook.name) }))
}

function numbered(counts: Map<string, number>, text: string): string {
  const count = (counts.get(text) ?? 0) + 1
  counts.set(text, count)
  return count === 1 ? text : `${text} #${count}`
}

const onlyAfterwards = 'it belongs to afterPublish: a check is a command, and runs once for one content'

/** A command that is to look at the new content. */
const checkCommand: ValueType<ChosenHook<'exec'>['read']> = {
  read: (value) => {
    const found = exec.read(value, undefined)
    if (!found || found.command.slice(1).some((word) => word.includes(directoryPlaceholder))) return found
    return value.wrong(
      `has no argument with ${directoryPlaceholder}, which stands for the new content`,
      'without it, the command checks what is published already',
    )
  },
  schema: () => {
    const pattern = directoryPlaceholder.replace(/[{}]/g, '\\$&')
    return { ...exec.schema(), contains: { type: 'string', pattern } }
  },
}

const checkFields = {
  exec: {
    type: checkCommand,
    description: `a program without a shell, and its arguments; ${directoryPlaceholder} in one of them stands for the new content`,
    required: `[nginx, -t, -c, "${directoryPlaceholder}/nginx.conf"]`,
  },
  timeout: { type: duration({ least: '1ms', most: '1m' }), description: 'for the command', default: '10s' },
} satisfies Fields<unknown>

/** A check judges the same content alike each time, so that holdfast tries it once; and it must not hold up the directory for long. */
const contentCheck: ValueType<Hook<'exec'>> = mappingOf(
  {
    fields: checkFields,
    misplaced: Object.fromEntries(
      [...types, ...Object.keys(policyFields)]
        .filter((name) => !Object.hasOwn(checkFields, name))
        .map((name) => [name, onlyAfterwards]),
    ),
  },
  ({ read: { exec: read, timeout } }, { place }) =>
    read && hookOf({ type: 'exec', read }, { timeout, retries: 0, jitter: 0, place }),
)

/** The commands that examine content before it is published. */
export const contentChecks: ValueType<readonly Hook<'exec'>[]> = made(
  listOf(contentCheck, { mayBeEmpty: true }),
  numberedHooks,
)

function hookOf<Type extends HookType>(
  { type, read }: ChosenHook<Type>,
  policy: Pick<HookPolicy, 'timeout' | 'retries' | 'jitter' | 'place'>,
): Hook<Type> {
  const reader: HookReader<Type> = readers[type]
  // A digest, since arguments and URLs may hold secrets.
  const digest = createHash('sha256').update(JSON.stringify([type, ...reader.identity(read)]))
  const hook = { ...read, ...policy, type, key: digest.digest('hex').slice(0, 32) }
  return hook as unknown as Hook<Type>
}
