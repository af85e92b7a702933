/** Reads the kinds of hooks: those that act on a process (a signal, a command, a request, whose arguments may hold secrets), or on a service. */
import { constants } from 'node:os'
import { except, programPath } from './paths.js'
import { mappingOf, type Fields, type ValueType } from './field.js'
import { quote } from '../message-text.js'
import { nearestWord, type Value } from './value.js'
import { duration, oneOf, textType, textSchema, integer, nameLike } from './value-types.js'

const mostRetries = 100

/** How patiently the agent runs a hook: these fields stand beside its type, and not in it. */
export const policyFields = {
  timeout: { type: duration(), description: 'for one try', default: '10s' },
  retries: { type: integer(0, mostRetries), description: 'further tries after the first', default: 3 },
  jitter: {
    type: duration(),
    description: 'the time within which the nodes of a cluster run the hook, each at its own time; default: none',
  },
} satisfies Fields<unknown>

const misplacedPolicy: Readonly<Record<string, string>> = Object.fromEntries(
  Object.keys(policyFields).map((name) => [name, 'it belongs to the hook, beside its type']),
)

/** The actions that a hook may ask of systemd, as systemctl calls them. A new one starts here: the compiler then names each gap. */
const systemdActions = [
  'reload-or-restart',
  'try-reload-or-restart',
  'reload',
  'restart',
  'try-restart',
  'start',
] as const

/** As systemd.unit(5) has it; a template without its instance (`x@.service`) is none. */
const unitName =
  /^(?=.{1,255}$)[\w:.\\-]+(?:@[\w:.\\-]+)?\.(?:service|socket|target|timer|path|mount|automount|swap|slice|scope)$/

const unit: ValueType<string> = textType(
  { example: 'nginx.service', schema: () => ({ type: 'string', pattern: unitName.source }) },
  (text, value) => {
    if (unitName.test(text)) return text
    return value.wrong(`${quote(text)} is not the name of a unit`, 'write it with its type, as in "nginx.service"')
  },
)

const systemdFields = {
  action: { type: oneOf(systemdActions), description: 'as systemctl calls it', default: 'reload-or-restart' },
  unit: { type: unit, description: 'with its type, as in nginx.service', required: 'nginx.service' },
  socket: { type: programPath, description: 'of the bus', default: '/run/dbus/system_bus_socket' },
} satisfies Fields<unknown>

export const systemd: ValueType<SystemdSettings & { name: string }> = mappingOf(
  { fields: systemdFields, misplaced: misplacedPolicy },
  ({ read: { action, unit, socket }, wrong }) => {
    if (unit === undefined || wrong.has('socket')) return undefined
    return { name: `systemd ${action} ${unit}`, unit, action, socket }
  },
)

const staticPodFields = {
  name: { type: nameLike('etcd'), description: 'of the pod, as its manifest has it', required: 'etcd' },
  manifestDirectory: {
    type: programPath,
    description: 'where kubelet reads the manifest',
    required: '/etc/kubernetes/manifests',
  },
  lockFile: { type: programPath, description: 'the file that another program locks while it writes the manifest' },
} satisfies Fields<unknown>

export const staticPod: ValueType<StaticPodSettings & { name: string }> = mappingOf(
  { fields: staticPodFields, misplaced: misplacedPolicy },
  ({ read: { name: pod, manifestDirectory, lockFile } }) => {
    if (pod === undefined || manifestDirectory === undefined) return undefined
    return { name: `staticPod ${pod}`, pod, manifestDirectory, lockFile }
  },
)

export interface SignalSettings {
  readonly signal: NodeJS.Signals
  readonly pidFile: string
}

export interface ExecSettings {
  readonly command: readonly string[]
}

export interface HttpSettings {
  readonly url: string
  readonly method: string
}

/** These only end or stop a process. */
const unfitSignals: readonly string[] = ['SIGKILL', 'SIGSTOP']

const signalName: ValueType<NodeJS.Signals> = textType(
  {
    example: 'SIGHUP',
    schema: () => {
      const names = Object.keys(constants.signals).filter((name) => !unfitSignals.includes(name))
      return { enum: [...names, ...names.map((name) => name.slice('SIG'.length))] }
    },
  },
  (text, value) => {
    const known = Object.keys(constants.signals) as NodeJS.Signals[]
    const name = text.startsWith('SIG') ? text : `SIG${text}`
    const found = known.find((candidate) => candidate === name)
    if (found !== undefined && unfitSignals.includes(found)) {
      return value.wrong(`${found} only ends or stops a process`, 'write as in "SIGHUP"')
    }
    if (found !== undefined) return found
    // Without the prefix that all signals share: otherwise any three letters are near to some signal.
    const meant = nearestWord(
      name.slice('SIG'.length),
      known.map((candidate) => candidate.slice('SIG'.length)),
    )
    const suggestion = meant === undefined ? 'write as in "SIGHUP", "SIGUSR1"' : `did you mean "SIG${meant}"?`
    return value.wrong(`${quote(text)} is not a signal`, suggestion)
  },
)

const signalFields = {
  name: { type: signalName, description: 'of the signal, with or without SIG', required: 'SIGHUP' },
  pidFile: {
    type: programPath,
    description: 'the file that holds the number of the process',
    required: '/run/NAME.pid',
  },
} satisfies Fields<unknown>

export const signal: ValueType<SignalSettings & { name: string }> = mappingOf(
  { fields: signalFields, misplaced: misplacedPolicy },
  ({ read: { name, pidFile } }) =>
    name === undefined || pidFile === undefined
      ? undefined
      : { name: `signal ${name} ${pidFile}`, signal: name, pidFile },
)

/** A command as a list of words, without a shell. */
export const exec: ValueType<ExecSettings & { name: string }> = {
  read: (value) => {
    const { node } = value
    if (node.kind === 'scalar' && typeof node.value === 'string') {
      return value.wrong('is one string', 'write a list, ["/usr/bin/systemctl", "reload", "x"]: there is no shell')
    }
    const [program, ...rest] = value.list()
    if (program === undefined) return undefined
    const path = readProgram(program)
    const command = [path, ...rest.map(readArgument)]
    if (!command.every((word) => word !== undefined)) return undefined
    return { name: `exec ${programName(command[0] ?? '')}`, command }
  },
  schema: () => ({
    type: 'array',
    minItems: 1,
    items: [{ type: 'string', pattern: '^(?:/[^\\u0000]*|[^/\\u0000]+)$' }],
    additionalItems: { type: 'string', pattern: '^[^\\u0000]*$' },
  }),
}

/** An absolute path, or a name without a slash, which the hook finds by its PATH. */
function readProgram(value: Value): string | undefined {
  const { node } = value
  const isName = node.kind === 'scalar' && typeof node.value === 'string' && /^[^/]+$/.test(node.value)
  return isName ? value.text() : programPath.read(value, undefined)
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

const url: ValueType<URL> = textType(
  {
    example: 'http://127.0.0.1:9000/reload',
    schema: () => {
      const scheme = '[\\u0000-\\u0020]*[Hh][Tt][Tt][Pp][Ss]?:'
      const credentials = `^${scheme}[/\\\\]+[^/\\\\?#]*[^/\\\\?#:@][^/\\\\?#]*@`
      return except({ ...textSchema, pattern: `^${scheme}[^\\u0000]+$` }, credentials, '#[^\\u0000-\\u0020]')
    },
  },
  (text, value) => {
    const example = 'write as in "http://127.0.0.1:9000/reload"'
    const url = URL.canParse(text) ? new URL(text) : undefined
    if (url === undefined) return value.wrong('is not a URL', example)
    if (url.protocol !== 'http:' && url.protocol !== 'https:')
      return value.wrong('is not an http or https URL', example)
    if (url.username !== '' || url.password !== '') {
      return value.wrong('contains credentials', 'remove them: secrets do not belong in this file')
    }
    if (url.hash !== '') return value.wrong('has a fragment', "remove what follows '#': it is never sent")
    return url
  },
)

const httpFields = {
  // A reload is a change, so POST is the default.
  method: {
    type: oneOf(['POST', 'GET', 'PUT', 'PATCH', 'DELETE', 'HEAD']),
    description: 'of the request',
    default: 'POST',
  },
  url: {
    type: url,
    description: 'http or https, without credentials and without a fragment',
    required: '"http://127.0.0.1:9000/reload"',
  },
} satisfies Fields<unknown>

export const http: ValueType<HttpSettings & { name: string }> = mappingOf(
  { fields: httpFields, misplaced: misplacedPolicy },
  ({ read: { url, method } }) => (url === undefined ? undefined : { name: `http ${url.host}`, url: url.href, method }),
)

export type SystemdAction = (typeof systemdActions)[number]

export interface SystemdSettings {
  readonly unit: string
  readonly action: SystemdAction
  /** Of the bus. */
  readonly socket: string
}

export interface StaticPodSettings {
  /** The name of the pod, as its manifest has it. */
  readonly pod: string
  readonly manifestDirectory: string
  /** undefined: holdfast alone writes the manifest. */
  readonly lockFile: string | undefined
}
