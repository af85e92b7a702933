import { doubtsOf, parseManifest, refuseUnrunnable, type KnownNode } from '../../../src/static-pods/pod/manifest.js'

/** Why holdfast refuses a manifest; undefined where it takes it. */
export async function errorOf(text: string | Uint8Array, node?: KnownNode): Promise<string | undefined> {
  try {
    refuseUnrunnable(await parseManifest(Buffer.from(text), 'web.yaml'), 'web.yaml', node)
    return undefined
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'InvalidInput') throw error
    return error.message
  }
}

/** What holdfast says of a manifest for a node of which it knows nothing. */
export async function saidOf(text: string): Promise<'refused' | 'warned' | 'published'> {
  if ((await errorOf(text)) !== undefined) return 'refused'
  return doubtsOf(await parseManifest(Buffer.from(text), 'web.yaml')).length > 0 ? 'warned' : 'published'
}
