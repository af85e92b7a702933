/* One manifest from a local file, and what else it needs from a local directory. No API server is asked. */
import { resolve } from 'node:path'
import { Deadline } from '../deadline.js'
import { late } from './failure.js'
import { dryRun, install, type InstallResult, type InstallSettings } from './install.js'
import { planFromFiles, type LocalFiles } from './plan-from-files.js'

export interface FilesInstallRequest extends Pick<
  InstallSettings,
  'disk' | 'log' | 'signal' | 'manifestDirectory' | 'manifestLock' | 'requireProven' | 'allowOlder' | 'checkHostPaths'
> {
  readonly files: LocalFiles
  /** Milliseconds for the whole run. */
  readonly timeout: number
  readonly dryRun: boolean
}

/** @throws InvalidInput, StaticPodError, DurableWriteError */
export async function installFromFiles(request: FilesInstallRequest): Promise<InstallResult> {
  const deadline = new Deadline(request.timeout, request.signal)
  try {
    return await planAndInstall(request, deadline)
  } finally {
    deadline.dispose()
  }
}

async function planAndInstall(request: FilesInstallRequest, deadline: Deadline): Promise<InstallResult> {
  const { files, timeout, signal, ...rest } = request
  const end = performance.now() + timeout
  const plan = await planFromFiles({ ...files, manifest: resolve(files.manifest) })
  const settings: InstallSettings = {
    ...rest,
    signal: deadline.signal,
    timeLeft: () => Math.max(0, end - performance.now()),
    warnOfHostPaths: true,
  }
  try {
    return await (request.dryRun ? dryRun(plan, settings) : install(plan, settings))
  } catch (error) {
    throw deadline.expired && !signal.aborted ? late(error, timeout) : error
  }
}
