import { parseManifest, refuseUnrunnable } from '../../../src/static-pods/pod/manifest.js'

/** Why holdfast refuses a manifest; undefined where it takes it. */
export async function errorOf(text: string | Uint8Array): Promise<string | undefined> {
  try {
    refuseUnrunnable(await parseManifest(Buffer.from(text), 'web.yaml'), 'web.yaml')
    return undefined
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'InvalidInput') throw error
    return error.message
  }
}
