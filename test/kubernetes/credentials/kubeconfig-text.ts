import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Credentials, type CredentialsOptions } from '../../../src/kubernetes/credentials/credentials.js'

/** A kubeconfig of one context, as JSON (which is YAML too). */
export function kubeconfig(cluster: object, user: object, namespace?: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'main',
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'main', context: { cluster: 'c', user: 'u', ...(namespace && { namespace }) } }],
  })
}

export const base64 = (text: string): string => Buffer.from(text).toString('base64')

/** Writes it into the directory and loads it; each use looks at the files, unless options say otherwise. */
export function loadKubeconfig(
  directory: string,
  text: string,
  options: Partial<CredentialsOptions> = {},
): Promise<Credentials> {
  const file = join(directory, 'kubeconfig')
  writeFileSync(file, text)
  return new Credentials({ kubeconfig: file, environment: {}, timing: { look: 0 }, ...options }).load()
}
