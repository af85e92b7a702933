import { isIPv6 } from 'node:net'
import { join } from 'node:path'
import { readFile } from 'node:fs/promises'
import type { ContextSettings } from './kubeconfig.js'
import type { SettingsSource } from './live-access.js'
import type { Environment } from '../connection/proxy.js'
import { Field, KubeconfigError } from './kubeconfig-file.js'

/** Where kubelet mounts a pod's service account. */
export const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

/** Whether we are in a pod: kubelet sets these two variables in every container. */
export function inPod(environment: Environment): boolean {
  return Boolean(environment['KUBERNETES_SERVICE_HOST'] && environment['KUBERNETES_SERVICE_PORT'])
}

/** The pod's own service account (client-go/rest/config.go, InClusterConfig). Throws KubeconfigError outside a pod. */
export function serviceAccountSource(environment: Environment, directory: string): SettingsSource {
  const host = environment['KUBERNETES_SERVICE_HOST']
  const port = environment['KUBERNETES_SERVICE_PORT']
  if (!host || !port) {
    throw new KubeconfigError(
      '',
      '',
      'no kubeconfig is given, and this is not a pod (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set); name a kubeconfig',
    )
  }
  const address = `https://${isIPv6(host) ? `[${host}]` : host}:${port}`
  const origin = `service account ${directory}`
  if (!URL.canParse(address)) {
    throw new KubeconfigError('', 'KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT', 'not a host and a port')
  }
  const field = new Field('', 'service account', undefined)
  const file = (name: string) => ({ type: 'file' as const, path: join(directory, name), field })
  const read = async (): Promise<ContextSettings> => ({
    context: '',
    namespace: await readNamespace(join(directory, 'namespace')),
    cluster: {
      server: new URL(address),
      serverName: undefined,
      insecure: false,
      authority: file('ca.crt'),
      proxy: undefined,
      execConfig: undefined,
    },
    user: {
      certificate: undefined,
      token: file('token'),
      basic: undefined,
      exec: undefined,
      impersonation: {},
    },
  })
  return { origin, paths: [], read }
}

/** A projected volume made by hand may lack it. */
async function readNamespace(path: string): Promise<string | undefined> {
  const text = await readFile(path, 'utf8').catch(() => '')
  return text.trim() || undefined
}
