import { readFileSync } from 'node:fs'

/** Set where no package.json is beside the program: in the single executable. */
declare const bundledVersion: string | undefined

/** The version in package.json. That file is three levels above the sources and the bundle, and four above the compiled files. */
export function version(): string {
  if (typeof bundledVersion === 'string') return bundledVersion
  for (const up of ['../../../package.json', '../../../../package.json']) {
    try {
      const manifest: unknown = JSON.parse(readFileSync(new URL(up, import.meta.url), 'utf8'))
      if (manifest !== null && typeof manifest === 'object' && 'name' in manifest && 'version' in manifest) {
        if (manifest.name === 'holdfast') return String(manifest.version)
      }
    } catch {
      // Not there: the other layout.
    }
  }
  return 'unknown'
}
