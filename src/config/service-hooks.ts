/** Reads hooks that act on a service of the node. */
import { readAbsolutePath } from './paths.js'
import { quote } from '../quote.js'
import type { Value } from './value.js'

/** What systemd may be asked to do, as systemctl calls it. A new one starts here: the compiler then names what it lacks. */
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

const systemBus = '/run/dbus/system_bus_socket'

/** As systemd.unit(5) has it; a template without its instance (`x@.service`) is none. */
const unitName =
  /^(?=.{1,255}$)[\w:.\\-]+(?:@[\w:.\\-]+)?\.(?:service|socket|target|timer|path|mount|automount|swap|slice|scope)$/

type Misplaced = Readonly<Record<string, string>>

export function readSystemd(value: Value, misplaced: Misplaced): (SystemdSettings & { name: string }) | undefined {
  const systemd = value.mapping(['unit', 'action', 'socket'], misplaced)
  const action = systemd?.field('action')?.oneOf(systemdActions) ?? 'reload-or-restart'
  const unitValue = systemd?.required('unit', 'nginx.service')
  const unit = unitValue && readUnit(unitValue)
  const socketValue = systemd?.field('socket')
  const socket = socketValue === undefined ? systemBus : readAbsolutePath(socketValue)
  if (unit === undefined || socket === undefined) return undefined
  return { name: `systemd ${action} ${unit}`, unit, action, socket }
}

function readUnit(value: Value): string | undefined {
  const text = value.text('nginx.service')
  if (text === undefined || unitName.test(text)) return text
  return value.wrong(`${quote(text)} is not the name of a unit`, 'write it with its type, as in "nginx.service"')
}

export interface StaticPodSettings {
  /** The name of the pod, as its manifest has it. */
  readonly pod: string
  readonly manifestDirectory: string
  /** undefined: nobody else writes the manifest. */
  readonly lockFile: string | undefined
}

export function readStaticPod(value: Value, misplaced: Misplaced): (StaticPodSettings & { name: string }) | undefined {
  const staticPod = value.mapping(['name', 'manifestDirectory', 'lockFile'], misplaced)
  const pod = staticPod?.required('name', 'etcd')?.name('etcd')
  const directoryValue = staticPod?.required('manifestDirectory', '/etc/kubernetes/manifests')
  const manifestDirectory = directoryValue && readAbsolutePath(directoryValue)
  const lockValue = staticPod?.field('lockFile')
  const lockFile = lockValue && readAbsolutePath(lockValue)
  if (pod === undefined || manifestDirectory === undefined) return undefined
  return { name: `staticPod ${pod}`, pod, manifestDirectory, lockFile }
}
