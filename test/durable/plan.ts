/** A plan as the program makes it, of what the real file system holds. */
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { planFor as plan } from '../../src/durable/publish/request.js'

const fs = new NodeFileSystem()

export function planFor(target: string, options: Omit<Parameters<typeof plan>[1], 'fs'>): ReturnType<typeof plan> {
  return plan(target, { ...options, fs })
}
