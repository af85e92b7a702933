import { constants, promises as fsp } from 'node:fs'
import { connect } from 'node:net'
import { basename, dirname } from 'node:path'
import type { Hook, HookType } from '../config/hooks.js'
import { Deadline } from '../deadline.js'
import { DurableCalls } from '../durable/index.js'
import { messageOf } from '../errors.js'
import { programPath } from '../program-path.js'
import { findManifest } from '../static-pods/renew.js'
import { HookError } from '../directories/hook-error.js'
import { environment } from '../directories/hook-exec.js'
import { findSystemd } from '../directories/hook-systemd.js'
import { holdProcess, PidFileError } from '../directories/pid-file.js'
import { addCapability, type ProcessCredentials } from './capabilities.js'
import { codeOrMessage, fault, ok, warn, type CheckResult } from './findings.js'
import { pidNamespaceIsOwn } from './this-process.js'

/** Milliseconds for a connection to an http hook's host. */
const connectTimeout = 2_000

/** Whether a hook could run from here, as far as the check can tell without running it. */
export async function checkHook(hook: Hook, identity: ProcessCredentials): Promise<CheckResult> {
  const { status, found, advice } = await hookResult(hook, identity)
  return { check: 'hook', status, found: `${hook.name}: ${found}`, advice }
}

/** The same of a command of `beforePublish`, and where it will find the new content. */
export async function checkContentCheck(hook: Hook<'exec'>, identity: ProcessCredentials): Promise<CheckResult> {
  const result = await checkHook(hook, identity)
  if (result.status !== 'OK' || identity.has('CAP_SYS_ADMIN')) return result
  return warn(
    'hook',
    `${result.found}; without CAP_SYS_ADMIN it finds the new content only by {dir}: absolute paths in what it checks name the old content`,
    'name files in the content by relative paths, or grant CAP_SYS_ADMIN',
  )
}

const checks: {
  readonly [Type in HookType]: (hook: Hook<Type>, identity: ProcessCredentials) => Promise<CheckResult>
} = {
  signal: checkSignal,
  exec: ({ command }) => checkExec(command[0] ?? ''),
  http: ({ url }) => checkHttp(new URL(url)),
  systemd: checkSystemd,
  staticPod: checkStaticPod,
}

function hookResult<Type extends HookType>(hook: Hook<Type>, identity: ProcessCredentials): Promise<CheckResult> {
  return checks[hook.type](hook, identity)
}

async function checkSignal({ pidFile }: Hook<'signal'>, identity: ProcessCredentials): Promise<CheckResult> {
  if (await pidNamespaceIsOwn()) {
    return fault(
      'hook',
      "holdfast runs in a PID namespace of its own, where the host's process IDs mean nothing",
      'set hostPID: true in the pod',
    )
  }
  const directory = dirname(pidFile)
  if ((await kindAt(directory)) !== 'directory') {
    return fault('hook', `${directory}: no such directory`, 'mount it from the host, or correct pidFile')
  }
  try {
    const held = await holdProcess(pidFile)
    held.release()
    const { pid, uid, command } = held
    return checkKill(identity, uid) ?? ok('hook', `holdfast may signal process ${pid} (${command}) of user ${uid}`)
  } catch (error) {
    if (!(error instanceof PidFileError)) throw error
    return unheld(error, identity)
  }
}

/** Why the hook would signal nothing as the pid file is now; a process that is not there yet may come. */
function unheld({ message, kind }: PidFileError, identity: ProcessCredentials): CheckResult {
  switch (kind) {
    case 'missing':
      return checkKill(identity, undefined) ?? warn('hook', message, 'start the process, or correct pidFile')
    case 'stale':
      return warn('hook', message, 'start the process; in a pod, set hostPID: true')
    case 'refused': {
      const advice =
        'have root or the user of the process own the pid file and each directory above it, writable by nobody else; or correct pidFile'
      return fault('hook', message, advice)
    }
  }
}

/** kill(2): a process of the same user may, any other needs the capability. */
function checkKill(identity: ProcessCredentials, uid: number | undefined): CheckResult | undefined {
  if (identity.has('CAP_KILL') || uid === identity.uid) return undefined
  if (uid === undefined) {
    return warn(
      'hook',
      `the process is not running yet; CAP_KILL is missing, and will be needed unless it runs as user ${identity.uid}`,
      addCapability('CAP_KILL'),
    )
  }
  return fault(
    'hook',
    `CAP_KILL is missing: the process runs as user ${uid}, holdfast as user ${identity.uid}`,
    addCapability('CAP_KILL'),
  )
}

async function checkExec(name: string): Promise<CheckResult> {
  const program = await programPath(name, environment.PATH)
  if (program === undefined) {
    return fault(
      'hook',
      `${name}: no such program in ${environment.PATH}`,
      'add the program to the image, or name it by its absolute path',
    )
  }
  const kind = await kindAt(program)
  if (kind === undefined) {
    return fault(
      'hook',
      `${program}: no such file`,
      'add the program to the image, mount it from the host, or use a signal or http hook',
    )
  }
  if (kind !== 'file') return fault('hook', `${program} is not a regular file`, 'name an executable file')
  try {
    await fsp.access(program, constants.X_OK)
  } catch (error) {
    return fault('hook', `${program} is not executable: ${codeOrMessage(error)}`, `chmod +x ${program}`)
  }
  const { interpreter, argument = '' } = await firstLineOf(program)
  if (interpreter?.endsWith('\r') || argument.endsWith('\r')) {
    const has = `${program} has Windows line ends`
    const advice = `sed -i 's/\\r$//' ${program}`
    // An interpreter may forgive it in its argument, as perl does.
    return argument === ''
      ? fault('hook', `${has}: the kernel looks for the interpreter ${JSON.stringify(interpreter)}`, advice)
      : warn('hook', `${has}: ${interpreter} gets the argument ${JSON.stringify(argument)}`, advice)
  }
  if (interpreter !== undefined && (await kindAt(interpreter)) === undefined) {
    return fault(
      'hook',
      `${program} is a script for ${interpreter}: no such file`,
      'add the interpreter to the image, or use a program that needs none',
    )
  }
  if (basename(program) === 'systemctl' && (await kindAt('/run/systemd/system')) === undefined) {
    return fault(
      'hook',
      'systemctl needs a running systemd, but /run/systemd/system does not exist here',
      "mount the host's /run/systemd and /run/dbus, or use a signal hook",
    )
  }
  return ok('hook', `${program} is executable`)
}

/** A script's interpreter and its argument, from the first line as the kernel reads it (execve(2)); none of any other or unreadable file. */
async function firstLineOf(program: string): Promise<{ readonly interpreter?: string; readonly argument?: string }> {
  let handle
  try {
    handle = await fsp.open(program, constants.O_RDONLY | constants.O_NONBLOCK)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(256), 0, 256, 0)
    const line = /^#![ \t]*(?<interpreter>\/[^ \t\n]+)[ \t]*(?<argument>[^\n]*)/.exec(
      buffer.toString('latin1', 0, bytesRead),
    )
    return { ...line?.groups }
  } catch {
    return {}
  } finally {
    await handle?.close()
  }
}

/** Connects and closes, and sends nothing. The result shows neither path nor query, which may hold secrets. */
async function checkHttp(url: URL): Promise<CheckResult> {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
  const code = await new Promise<string | undefined>((resolve) => {
    const socket = connect({ host, port, timeout: connectTimeout })
    const end = (outcome: string | undefined) => {
      socket.destroy()
      resolve(outcome)
    }
    socket.once('connect', () => end(undefined))
    socket.once('timeout', () => end('ETIMEDOUT'))
    socket.once('error', (error) => end(codeOrMessage(error)))
  })
  if (code === undefined) return ok('hook', 'a server listens there')
  const meaning = code === 'ENOTFOUND' || code === 'EAI_AGAIN' ? 'could not resolve the host name' : 'no connection'
  return warn(
    'hook',
    `${meaning} (${code})`,
    "start the server; to reach the host's 127.0.0.1, a pod needs hostNetwork: true",
  )
}

/** Asks the bus whether systemd is there, and nothing else. */
async function checkSystemd(hook: Hook<'systemd'>): Promise<CheckResult> {
  const deadline = new Deadline(connectTimeout, undefined)
  try {
    await findSystemd(hook, deadline.signal)
    return ok('hook', `systemd answers at ${hook.socket}`)
  } catch (error) {
    if (!(error instanceof HookError)) throw error
    const advice = 'run on a host with systemd, as root; in a pod, mount the directory of the socket from the host'
    return fault('hook', error.detail, advice)
  } finally {
    deadline.dispose()
  }
}

async function checkStaticPod({ pod, manifestDirectory }: Hook<'staticPod'>): Promise<CheckResult> {
  if ((await kindAt(manifestDirectory)) !== 'directory') {
    return fault(
      'hook',
      `${manifestDirectory}: no such directory`,
      'mount it from the host, or correct manifestDirectory',
    )
  }
  try {
    const { path } = await findManifest(new DurableCalls(), manifestDirectory, pod)
    await fsp.access(manifestDirectory, constants.W_OK)
    return ok('hook', `${path} is the manifest of ${pod}`)
  } catch (error) {
    return fault(
      'hook',
      messageOf(error),
      'name the pod as its manifest does, in a directory that holdfast may write to',
    )
  }
}

async function kindAt(path: string): Promise<'file' | 'directory' | 'other' | undefined> {
  try {
    const status = await fsp.stat(path)
    return status.isFile() ? 'file' : status.isDirectory() ? 'directory' : 'other'
  } catch {
    return undefined
  }
}
