/**
 * An installation by the built program's own code: `INSTALLER PLAN`, a file with the content and its places. It installs directories of
 * certificates and several manifests without an API server.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Disk as InstallDisk } from '../../../src/durable/index.js'
import type * as Install from '../../../src/static-pods/install/install.js'
import type { InstallPlan, InstallSettings } from '../../../src/static-pods/install/install-plan.js'

type Settings = Pick<
  InstallSettings,
  'manifestDirectory' | 'manifestLock' | 'requireProven' | 'allowOlder' | 'checkHostPaths' | 'warnOfHostPaths'
>

const load = async (module: string): Promise<unknown> =>
  import(pathToFileURL(join(process.env['HOLDFAST_BUILT'] ?? '', module)).href)

const { Disk } = (await load('src/durable/index.js')) as { Disk: new () => InstallDisk }
const { install } = (await load('src/static-pods/install/install.js')) as typeof Install
const nothing = (): void => undefined
const { plan, settings } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'), bytesBack) as {
  plan: InstallPlan
  settings: Settings
}

const { manifests } = await install(plan, {
  ...settings,
  disk: new Disk(),
  signal: new AbortController().signal,
  timeLeft: () => 0,
  log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
})
process.stdout.write(JSON.stringify(manifests))

/** A Buffer as JSON.stringify writes it. */
function bytesBack(_key: string, value: unknown): unknown {
  const { type, data } = (value ?? {}) as { type?: unknown; data?: unknown }
  return type === 'Buffer' && Array.isArray(data) ? Buffer.from(data as number[]) : value
}
