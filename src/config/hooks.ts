/** Reads `afterPublish` and `beforePublish`. A hook's URL, path, query and arguments may hold secrets: they are in no message and in no name. */
import { createHash } from 'node:crypto'
import { constants } from 'node:os'
import { readDuration } from './duration.js'
import { readAbsolutePath } from './paths.js'
import { quote } from '../quote.js'
import { readStaticPod, readSystemd, type StaticPodSettings, type SystemdSettings } from './service-hooks.js'
import { nearest } from './suggestion.js'
import type { Value } from './value.js'

/** What each type of hook is configured with. A new type starts here: the compiler then names what it lacks. */
interface HookSettings {
  readonly signal: { readonly signal: NodeJS.Signals; readonly pidFile: string }
  readonly exec: { readonly command: readonly string[] }
  readonly http: { readonly url: string; readonly method: string }
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
   * What the record calls it: a digest of what it does, so that it is found again after a restart wherever it then stands in the
   * list, and never taken for another one.
   */
  readonly key: string
  /** What it is called in logs, metrics and status: `signal SIGHUP /run/x.pid`, `exec systemctl #2`, `http 127.0.0.1:9000`. */
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

interface HookReader<Type extends HookType> {
  /** The settings, and what people call the hook: nothing secret. */
  readonly read: (value: Value) => (HookSettings[Type] & { readonly name: string }) | undefined
  /** What the hook does, and nothing of how patiently: another hook of the type has another identity. */
  readonly identity: (settings: HookSettings[Type]) => readonly string[]
}

const readers: { readonly [Type in HookType]: HookReader<Type> } = {
  signal: { read: readSignal, identity: ({ signal, pidFile }) => [signal, pidFile] },
  exec: { read: readExec, identity: ({ command }) => command },
  http: { read: readHttp, identity: ({ method, url }) => [method, url] },
  systemd: {
    read: (value) => readSystemd(value, policyFields),
    identity: ({ unit, action, socket }) => [unit, action, socket],
  },
  staticPod: {
    read: (value) => readStaticPod(value, policyFields),
    identity: ({ pod, manifestDirectory, lockFile = '' }) => [pod, manifestDirectory, lockFile],
  },
}

const types = Object.keys(readers) as HookType[]
const methods = ['POST', 'GET', 'PUT', 'PATCH', 'DELETE', 'HEAD'] as const
/** Stands for the directory that is checked. */
const directoryPlaceholder = '{dir}'
const defaultTimeout = 10_000
const defaultRetries = 3
const mostRetries = 100

/**
 * The hooks of one directory. Their names are unique, for people: `exec systemctl`, `exec systemctl #2`, in the order of the file.
 * Their keys are unique too, and stay the same however the list around them is edited.
 */
export function readHooks(value: Value): readonly Hook[] {
  return numberedHooks(value.list().map(readHook))
}

/** The commands that examine content before it is published. */
export function readContentChecks(value: Value): readonly Hook<'exec'>[] {
  return numberedHooks(value.list().map(readContentCheck))
}

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

function readHook(value: Value): Hook | undefined {
  const hook = value.mapping([...types, ...Object.keys(policyFields)])
  const timeoutValue = hook?.field('timeout')
  const timeout = timeoutValue && readDuration(timeoutValue)
  const retries = hook?.field('retries')?.integer(0, mostRetries)
  const jitterValue = hook?.field('jitter')
  const jitter = jitterValue && readDuration(jitterValue)
  const type = hook?.exactlyOne(types)
  const body = type && hook?.field(type)
  if (body === undefined || type === undefined) return undefined
  const patience = { timeout: timeout ?? defaultTimeout, retries: retries ?? defaultRetries, jitter: jitter ?? 0 }
  const policy = { ...patience, place: value.place }
  return readTyped(type, body, policy)
}

const longestCheck = { least: '1ms', most: '1m' } as const

/** A check says what it thinks of the same content each time, so that it is tried once; and it must not hold up the directory for long. */
function readContentCheck(value: Value): Hook<'exec'> | undefined {
  const check = value.mapping(['exec', 'timeout'], misplacedInChecks)
  const timeoutValue = check?.field('timeout')
  const timeout = timeoutValue && readDuration(timeoutValue, longestCheck)
  const body = check?.required('exec', `[nginx, -t, -c, "${directoryPlaceholder}/nginx.conf"]`)
  if (body === undefined) return undefined
  const hook = readTyped('exec', body, {
    timeout: timeout ?? defaultTimeout,
    retries: 0,
    jitter: 0,
    place: value.place,
  })
  if (hook === undefined || hook.command.slice(1).some((word) => word.includes(directoryPlaceholder))) return hook
  return body.wrong(
    `has no argument with ${directoryPlaceholder}, which stands for the new content`,
    'without it, the command checks what is published already',
  )
}

const onlyAfterwards = 'it belongs to afterPublish: a check is a command, and runs once for one content'
const misplacedInChecks = {
  signal: onlyAfterwards,
  http: onlyAfterwards,
  systemd: onlyAfterwards,
  staticPod: onlyAfterwards,
  retries: onlyAfterwards,
  jitter: onlyAfterwards,
}

function readTyped<Type extends HookType>(
  type: Type,
  body: Value,
  policy: Pick<HookPolicy, 'timeout' | 'retries' | 'jitter' | 'place'>,
): Hook<Type> | undefined {
  const reader: HookReader<Type> = readers[type]
  const settings = reader.read(body)
  if (settings === undefined) return undefined
  // A digest, since arguments and URLs may hold secrets.
  const digest = createHash('sha256').update(JSON.stringify([type, ...reader.identity(settings)]))
  const hook = { ...settings, ...policy, type, key: digest.digest('hex').slice(0, 32) }
  return hook as unknown as Hook<Type>
}

const policyFields = {
  timeout: 'it belongs to the hook, beside its type',
  retries: 'it belongs to the hook, beside its type',
  jitter: 'it belongs to the hook, beside its type',
}

function readSignal(value: Value): (HookSettings['signal'] & { name: string }) | undefined {
  const signal = value.mapping(['name', 'pidFile'], policyFields)
  const nameValue = signal?.required('name', 'SIGHUP')
  const name = nameValue && readSignalName(nameValue)
  const pidFileValue = signal?.required('pidFile', '/run/NAME.pid')
  const pidFile = pidFileValue && readAbsolutePath(pidFileValue)
  if (name === undefined || pidFile === undefined) return undefined
  return { name: `signal ${name} ${pidFile}`, signal: name, pidFile }
}

function readSignalName(value: Value): NodeJS.Signals | undefined {
  const text = value.text('SIGHUP')
  if (text === undefined) return undefined
  const known = Object.keys(constants.signals) as NodeJS.Signals[]
  const name = text.startsWith('SIG') ? text : `SIG${text}`
  const found = known.find((candidate) => candidate === name)
  if (found === 'SIGKILL' || found === 'SIGSTOP') {
    return value.wrong(`${found} only ends or stops a process`, 'write as in "SIGHUP"')
  }
  if (found !== undefined) return found
  // Without what they all have in common: otherwise any three letters are near to some signal.
  const meant = nearest(
    name.slice('SIG'.length),
    known.map((candidate) => candidate.slice('SIG'.length)),
  )
  const suggestion = meant === undefined ? 'write as in "SIGHUP", "SIGUSR1"' : `did you mean "SIG${meant}"?`
  return value.wrong(`${quote(text)} is not a signal`, suggestion)
}

function readExec(value: Value): (HookSettings['exec'] & { name: string }) | undefined {
  const { node } = value
  if (node.kind === 'scalar' && typeof node.value === 'string') {
    return value.wrong('is one string', 'write a list, ["/usr/bin/systemctl", "reload", "x"]: there is no shell')
  }
  const words = value.list()
  const [program, ...rest] = words
  if (program === undefined) return undefined
  const path = readProgram(program)
  const command = [path, ...rest.map(readArgument)]
  if (!command.every((word) => word !== undefined)) return undefined
  return { name: `exec ${programName(command[0] ?? '')}`, command }
}

/** An absolute path, or a name without a slash, which is looked for in the PATH that hooks have. */
function readProgram(value: Value): string | undefined {
  const { node } = value
  const isName = node.kind === 'scalar' && typeof node.value === 'string' && /^[^/]+$/.test(node.value)
  return isName ? value.text() : readAbsolutePath(value)
}

/** An argument may be empty, and is never shown. */
function readArgument(value: Value): string | undefined {
  const { node } = value
  if (node.kind === 'scalar' && typeof node.value === 'string') {
    return node.value.includes('\0') ? value.wrong('contains a NUL character') : node.value
  }
  return value.wrong('is not a string', 'quote each argument')
}

function programName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1) || path
}

function readHttp(value: Value): (HookSettings['http'] & { name: string }) | undefined {
  const http = value.mapping(['url', 'method'], policyFields)
  const method = http?.field('method')?.oneOf(methods)
  const urlValue = http?.required('url', '"http://127.0.0.1:9000/reload"')
  const url = urlValue && readUrl(urlValue)
  if (url === undefined) return undefined
  // A reload is a change, so it is asked for with POST where the file does not say.
  return { name: `http ${url.host}`, url: url.href, method: method ?? 'POST' }
}

function readUrl(value: Value): URL | undefined {
  const text = value.text('http://127.0.0.1:9000/reload')
  if (text === undefined) return undefined
  const example = 'write as in "http://127.0.0.1:9000/reload"'
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined) return value.wrong('is not a URL', example)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return value.wrong('is not an http or https URL', example)
  if (url.username !== '' || url.password !== '') {
    return value.wrong('contains credentials', 'remove them: secrets do not belong in this file')
  }
  if (url.hash !== '') return value.wrong('has a fragment', "remove what follows '#': it is never sent")
  return url
}
