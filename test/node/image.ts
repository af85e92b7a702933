/** The image that the Dockerfile describes, as image/build.sh has made it. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Containerd } from './containerd.js'
import { project } from '../project.js'

/** Where it is, with its base, unless HOLDFAST_IMAGES names another directory. */
export const imageDirectory = process.env.HOLDFAST_IMAGES ?? join(project, 'dist/image')

/** Takes it in as docker.io/library/holdfast:test. */
export async function loadImage(containerd: Containerd): Promise<void> {
  const archive = join(imageDirectory, 'holdfast.tar')
  if (!existsSync(archive)) throw new Error(`${archive} is missing: run test/node/image/build.sh ${imageDirectory}`)
  await containerd.load(archive)
}
