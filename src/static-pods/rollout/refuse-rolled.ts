import { DurableCalls } from '../../durable/index.js'
import { parseManifest } from '../pod/manifest.js'
import { readSmallFile } from '../node-files.js'
import { refuseUnfinished } from './rollout-status.js'

/** What a file is to hold; undefined: not known yet, or a directory. */
export type RolledContent = Uint8Array | { readonly path: string } | undefined

/** Keeps a person's command from what a rollout may still take back. @throws StaticPodError */
export async function refuseRolled(path: string, content: RolledContent): Promise<void> {
  const pod = async () => {
    const bytes = content && 'path' in content ? await readSmallFile(content.path) : content
    return bytes ? [await parseManifest(bytes, path)] : []
  }
  // What is no pod is none of the rollout's.
  await refuseUnfinished([path], await pod().catch(() => []), new DurableCalls(), `${path} is as it was`)
}
