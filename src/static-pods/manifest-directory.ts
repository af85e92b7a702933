import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Log } from '../log.js'
import { StaticPodError } from './failure.js'
import { codeOf } from './read-file.js'

/** kubelet's staticPodPath, as kubeadm and OpenShift configure it. */
const usual = '/etc/kubernetes/manifests'

/**
 * Where the manifests are that say what is in use: the directory that was named; else `manifests` beside the resource
 * directory, as OpenShift has it; else the usual one. Where there is none of these, the first of them, with a warning: then no
 * revision counts as live.
 * @throws StaticPodError where the named one does not exist: a mistyped path must not make everything removable
 */
export async function manifestDirectoryOf(
  named: string | undefined,
  resourceDirectory: string,
  log: Log,
  fallback = usual,
): Promise<string> {
  if (named !== undefined) {
    if (await exists(named)) return named
    throw new StaticPodError(
      `the manifest directory ${named} does not exist: it is not known which revisions are in use, and nothing was removed; ` +
        `check --pod-manifest-dir, and whether it is mounted here`,
    )
  }
  const beside = join(dirname(resourceDirectory), 'manifests')
  for (const path of [beside, fallback]) if (await exists(path)) return path
  log.warn(
    { paths: [beside, fallback] },
    'there is no manifest directory here, so that no revision counts as live; name it with --pod-manifest-dir',
  )
  return beside
}

/** Whatever is there, or cannot be looked at: reading it tells. */
async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (error: unknown) => codeOf(error) !== 'ENOENT',
  )
}
