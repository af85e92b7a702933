import type { Hook } from '../config/hooks.js'
import type { SystemdAction } from '../config/hook-kinds.js'
import { Deadline } from '../deadline.js'
import { bus, DBusConnection, DBusError } from './dbus.js'
import { messageTypes } from './dbus-message.js'
import { failureCode, HookError } from './hook-error.js'

const systemd = {
  destination: 'org.freedesktop.systemd1',
  path: '/org/freedesktop/systemd1',
  interface: 'org.freedesktop.systemd1.Manager',
}

const jobs = `type='signal',sender='${systemd.destination}',path='${systemd.path}',interface='${systemd.interface}',member='JobRemoved'`

/** Methods of the manager. */
const methods = {
  'reload-or-restart': 'ReloadOrRestartUnit',
  'try-reload-or-restart': 'ReloadOrTryRestartUnit',
  reload: 'ReloadUnit',
  restart: 'RestartUnit',
  'try-restart': 'TryRestartUnit',
  start: 'StartUnit',
} as const satisfies Record<SystemdAction, string>

/** The results of a job that did its work, or found nothing to do (systemctl takes both for success). */
const successes = ['done', 'skipped']

/**
 * Asks systemd, over the bus, to do something with a unit, and waits for the job's end. A job that is not awaited any longer, after
 * `timeout` or on `signal`, goes on by itself.
 */
export async function runSystemd(hook: Hook<'systemd'>, signal: AbortSignal): Promise<void> {
  const { name, unit, action, socket, timeout } = hook
  const deadline = new Deadline(timeout, signal)
  let connection: DBusConnection | undefined
  const progress = { asked: false }
  try {
    connection = await DBusConnection.open(socket, deadline.signal)
    const result = await jobOf(connection, unit, methods[action], deadline.signal, progress)
    if (!successes.includes(result)) throw new HookError(name, `the job of ${unit} ended with "${result}"`)
  } catch (error) {
    if (deadline.expired && !progress.asked)
      throw new HookError(name, `${socket}: the bus, or systemd on it, has not answered within ${timeout} ms`)
    if (deadline.expired)
      throw new HookError(name, `the job has not ended after ${timeout} ms; it goes on without holdfast`)
    throw error instanceof HookError ? error : new HookError(name, systemdProblem(error, socket, unit))
  } finally {
    connection?.close()
    deadline.dispose()
  }
}

/**
 * Whether systemd answers on this bus. Asks for nothing else.
 * @throws HookError, `name` in front
 */
export async function findSystemd({ name, unit, socket }: Hook<'systemd'>, signal: AbortSignal): Promise<void> {
  let connection: DBusConnection | undefined
  try {
    connection = await DBusConnection.open(socket, signal)
    await connection.call({ ...bus, member: 'GetNameOwner', texts: [systemd.destination] })
  } catch (error) {
    throw new HookError(name, systemdProblem(error, socket, unit))
  } finally {
    connection?.close()
  }
}

/** Starts a job, and waits for its result; `asked`: systemd may have started it. Its end may be announced before the answer that names it. */
async function jobOf(
  connection: DBusConnection,
  unit: string,
  member: string,
  signal: AbortSignal,
  progress: { asked: boolean },
): Promise<string> {
  const results = new Map<string, string>()
  /** By its unique name, which the bus gives to no other connection. */
  const manager: { sender?: string | undefined } = {}
  let announced = () => {}
  await connection.follow(jobs, ({ type, member, sender, body: [, job, , result] }) => {
    // Any client may send a signal of this name to us alone; only the bus tells its true sender.
    if (type !== messageTypes.signal || member !== 'JobRemoved' || sender === undefined || sender !== manager.sender)
      return
    if (typeof job !== 'string' || typeof result !== 'string') return
    results.set(job, result)
    announced()
  })
  // Without a subscriber, systemd announces nothing.
  manager.sender = (await connection.call({ ...systemd, member: 'Subscribe' })).sender
  progress.asked = true
  const [job] = (await connection.call({ ...systemd, member, texts: [unit, 'replace'] })).body
  for (;;) {
    const result = results.get(String(job))
    if (result !== undefined) return result
    await new Promise<void>((resolve, reject) => {
      announced = resolve
      connection.closed.catch(reject)
    })
    signal.throwIfAborted()
  }
}

const notThere = "systemd is not on this bus: mount the host's socket"

/** Names of errors, with advice; the hook does not show the bus's own texts. */
const errors: Readonly<Record<string, string>> = {
  'org.freedesktop.systemd1.NoSuchUnit': 'no such unit',
  'org.freedesktop.systemd1.JobTypeNotApplicable': 'the unit cannot do this',
  'org.freedesktop.DBus.Error.ServiceUnknown': notThere,
  'org.freedesktop.DBus.Error.NameHasNoOwner': notThere,
  'org.freedesktop.DBus.Error.AccessDenied': 'denied: run as root',
  'org.freedesktop.DBus.Error.InteractiveAuthorizationRequired': 'denied: run as root',
  'org.freedesktop.DBus.Error.AuthFailed':
    'the bus does not take this user: run as root, in no user namespace of its own',
}

/** The bus's end shows as one of these codes, depending on the call under way. */
const ended: ReadonlySet<string> = new Set(['unknown', 'ECONNRESET', 'EPIPE'])

function systemdProblem(error: unknown, socket: string, unit: string): string {
  if (error instanceof DBusError) return `${unit}: ${errors[error.error] ?? error.error}`
  if (error instanceof RangeError) return `${socket}: the bus sent what is no message of D-Bus`
  const code = failureCode(error)
  if (ended.has(code)) return `${socket}: the bus ended the connection`
  return `${socket}: ${code}${code === 'ENOENT' ? ': in a pod, mount the directory of the socket from the host' : ''}`
}
