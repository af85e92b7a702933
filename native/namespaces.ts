import { checkText } from './arguments.js'
import { SystemError } from './errno.js'
import { callNow, declare, type LibcFunction } from './libc.js'

const unshare = declare('unshare', 'int', ['int'])
const umount2 = declare('umount2', 'int', ['const char *', 'int'])
const mount = declare('mount', 'int', ['const char *', 'const char *', 'const char *', 'unsigned long', 'const char *'])

// Source: Linux, include/uapi/linux/sched.h and include/uapi/linux/mount.h.
const newMountNamespace = 0x20000
const newPidNamespace = 0x20000000
const bind = 0x1000
const recursive = 0x4000
const slave = 0x80000
const detach = 2

/**
 * Moves the calling thread, and the processes that it starts, to a new mount namespace. An unmount elsewhere unmounts here, too, so that
 * this keeps no disk busy; a mount here shows nowhere else. For a thread that ends soon: there is no way back. Throws SystemError: EPERM
 * without CAP_SYS_ADMIN.
 */
export function enterOwnMountNamespace(): void {
  call('unshare', '/', unshare, newMountNamespace)
  call('mount', '/', mount, 'none', '/', null, slave | recursive, null)
}

/**
 * Gives the processes that the calling thread starts from now on a new PID namespace: the first of them is number 1 there, and the kernel
 * ends all others with it (pid_namespaces(7)). The thread itself stays where it is, and can start no threads any more. Throws SystemError:
 * EPERM without CAP_SYS_ADMIN, ENOSPC where the machine allows no more of them.
 */
export function startInOwnPidNamespace(): void {
  call('unshare', '/', unshare, newPidNamespace)
}

/** Makes a directory or a file show under another path, too, for this thread's namespace. Throws SystemError. */
export function bindMount(source: string, target: string): void {
  call('mount', target, mount, checkText(source), checkText(target), null, bind, null)
}

/** An empty directory in memory over another one, with mode 0755. Throws SystemError. */
export function mountMemory(target: string): void {
  call('mount', target, mount, 'none', checkText(target), 'tmpfs', 0, 'mode=0755,size=1m')
}

/** Takes the newest mount at a path away, with all that is mounted below it. Throws SystemError. */
export function unmount(target: string): void {
  call('umount2', target, umount2, checkText(target), detach)
}

function call(name: string, path: string, fn: LibcFunction, ...args: (number | string | null)[]): void {
  const { result, errno } = callNow(fn, ...args)
  if (result !== 0) throw new SystemError(name, errno, path)
}
