import { promises as fsp } from 'node:fs'

/**
 * Whether this is certainly a container's own PID namespace: process 1 is this program, or another one of the same executable, or
 * the pod's pause process. Otherwise it stays uncertain.
 */
export async function pidNamespaceIsOwn(): Promise<boolean> {
  if (process.pid === 1) return true
  const first = await fsp.readFile('/proc/1/comm', 'latin1').catch(() => '')
  if (first.trim() === 'pause') return true
  try {
    return (await fsp.readlink('/proc/1/exe')) === (await fsp.readlink('/proc/self/exe'))
  } catch {
    return false
  }
}
