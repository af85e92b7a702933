import { promises as fsp, constants } from 'node:fs'
import { dirname } from 'node:path'
import type { FileSystem, Mount } from '../durable/file-system.js'
import { forgottenVolume } from '../durable/errors.js'
import { adviceOn, codeOrMessage, fault, ok, warn, type CheckResult } from './findings.js'
import * as mountTable from '../mountinfo.js'

/** Where the agent keeps its status: writable, and there again after a restart. Nothing is written to find out. */
export async function checkStateDirectory(fs: FileSystem, path: string): Promise<CheckResult> {
  let at = path
  for (;;) {
    try {
      const status = await fsp.stat(at)
      if (!status.isDirectory()) {
        return fault('state directory', `${at} is not a directory`, 'remove it, or set another stateDirectory')
      }
      break
    } catch (error) {
      const code = codeOrMessage(error)
      if (code !== 'ENOENT' || at === '/') {
        return fault('state directory', `could not read the attributes of ${at}: ${code}`, adviceOn(code))
      }
      at = dirname(at)
    }
  }
  const advice = (code: string) => (code === 'EROFS' ? forgottenVolume(path, path) : undefined) ?? adviceOn(code)
  const where = at === path ? '' : `does not exist: holdfast will create it in ${at}; `
  try {
    await fsp.access(at, constants.W_OK | constants.X_OK)
  } catch (error) {
    const code = codeOrMessage(error)
    return fault('state directory', `${where}holdfast may not write to ${at}: ${code}`, advice(code))
  }
  const mount = await mountOn(fs, at)
  if (mount === undefined) return ok('state directory', `${where}writable`)
  const own = forgottenVolume(path, path, mountTable.rootMount(), mount)
  const lost = own !== undefined || mount.type === 'tmpfs' || mount.type === 'ramfs'
  if (!lost) return ok('state directory', `${where}writable, on ${mount.type}`)
  return warn(
    'state directory',
    `${where}on ${own === undefined ? mount.type : "the container's own layer"}: the agent's last status is lost after a restart`,
    own ?? 'put it on a disk',
  )
}

/** undefined where it may be written to, and not be opened. */
async function mountOn(fs: FileSystem, path: string): Promise<Mount | undefined> {
  let descriptor
  try {
    descriptor = await fs.openPath(await fsp.realpath(path))
    return await fs.mount(descriptor)
  } catch {
    return undefined
  } finally {
    if (descriptor !== undefined) await fs.close(descriptor)
  }
}
