/** Reads hooks that act on a service of the node. */
import { mappingOf, type Fields, type ValueType } from './field.js'
import { misplacedPolicy } from './hook-policy.js'
import { programPath } from './paths.js'
import { quote } from '../quote.js'
import { nameLike, oneOf } from './value-types.js'
import type { Value } from './value.js'

/** The actions that a hook may ask of systemd, as systemctl calls them. A new one starts here: the compiler then names each gap. */
const systemdActions = [
  'reload-or-restart',
  'try-reload-or-restart',
  'reload',
  'restart',
  'try-restart',
  'start',
] as const

export type SystemdAction = (typeof systemdActions)[number]

export interface SystemdSettings {
  readonly unit: string
  readonly action: SystemdAction
  /** Of the bus. */
  readonly socket: string
}

/** As systemd.unit(5) has it; a template without its instance (`x@.service`) is none. */
const unitName =
  /^(?=.{1,255}$)[\w:.\\-]+(?:@[\w:.\\-]+)?\.(?:service|socket|target|timer|path|mount|automount|swap|slice|scope)$/

const unit: ValueType<string> = { read: readUnit, schema: () => ({ type: 'string', pattern: unitName.source }) }

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

function readUnit(value: Value): string | undefined {
  const text = value.text('nginx.service')
  if (text === undefined || unitName.test(text)) return text
  return value.wrong(`${quote(text)} is not the name of a unit`, 'write it with its type, as in "nginx.service"')
}

export interface StaticPodSettings {
  /** The name of the pod, as its manifest has it. */
  readonly pod: string
  readonly manifestDirectory: string
  /** undefined: holdfast alone writes the manifest. */
  readonly lockFile: string | undefined
}

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
