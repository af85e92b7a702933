/** Kubeconfig files, as kubeadm and kubectl write them (in JSON, which is YAML too). */
import { writeFileSync } from 'node:fs'

export interface KubeconfigContent {
  readonly server: string
  /** Path of the authority's certificate. */
  readonly authority: string
  /** The fields of `user`: token, tokenFile, client-certificate and client-key, exec. */
  readonly user: object
  /** Further fields of `cluster`: proxy-url, tls-server-name. */
  readonly cluster?: object
}

export function writeKubeconfig(file: string, content: KubeconfigContent): void {
  const { server, authority, user, cluster } = content
  const document = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'e2e', cluster: { server, 'certificate-authority': authority, ...cluster } }],
    users: [{ name: 'e2e', user }],
    contexts: [{ name: 'e2e', context: { cluster: 'e2e', user: 'e2e' } }],
    'current-context': 'e2e',
  }
  writeFileSync(file, JSON.stringify(document), { mode: 0o600 })
}
