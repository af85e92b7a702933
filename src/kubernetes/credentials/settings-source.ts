import { createHash } from 'node:crypto'
import { access, readFile } from 'node:fs/promises'
import { isIPv6 } from 'node:net'
import { join, resolve } from 'node:path'
import type { CredentialFiles } from './credential-files.js'
import { resolveContext, type ContextSettings } from './kubeconfig.js'
import type { Environment } from '../connection/proxy.js'
import type { Obeyed } from '../../trust.js'
import { decodeYaml } from '../../yaml/decode.js'
import { KubeconfigError, parseKubeconfig, KubeconfigField } from './kubeconfig-file.js'

/** Where kubelet mounts a pod's service account. */
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

export interface SettingsOptions {
  /** A file that the user named: it is used, or it is an error. */
  readonly kubeconfig?: string | undefined
  readonly context?: string | undefined
  readonly environment: Environment
  /**
   * Without `kubeconfig`: `service-account`, for a daemon, takes the pod's own and nothing else; `kubectl`, the
   * default, takes the KUBECONFIG variable, then the pod's service account, then ~/.kube/config.
   */
  readonly search?: 'kubectl' | 'service-account'
  /** Where the pod's service account is mounted, if not at kubelet's place. */
  readonly serviceAccount?: string
  /** Called before a named kubeconfig, or a file that it names, is read, and before a credential plugin runs; its error ends that. */
  readonly obey?: ((obeyed: Obeyed) => Promise<void>) | undefined
}

/** Where the settings come from: kubeconfigs, or a service account. */
export interface SettingsSource {
  readonly origin: string
  /** Files whose change means that `read` may answer differently. */
  readonly paths: readonly string[]
  /** Each file by way of these, so that one which is broken later leaves its last good content in force. */
  read(files: CredentialFiles): Promise<ContextSettings>
}

/** Called until the settings that it leads to could be read: an agent may start before its kubeconfig is there. */
export async function findSettings(options: SettingsOptions): Promise<SettingsSource> {
  const { kubeconfig, context, environment, search = 'kubectl', serviceAccount = SERVICE_ACCOUNT } = options
  if (kubeconfig !== undefined && kubeconfig !== '') {
    return kubeconfigSource([resolve(kubeconfig)], context, { obey: options.obey })
  }
  if (search === 'service-account') {
    if (context) throw noContext(context)
    return serviceAccountSource(environment, serviceAccount)
  }
  const listed = (environment['KUBECONFIG'] ?? '').split(':').filter((path) => path !== '')
  if (listed.length > 0) {
    const paths = [...new Set(listed.map((path) => resolve(path)))]
    return kubeconfigSource(paths, context, { variable: 'KUBECONFIG' })
  }
  // A context can only be one of a kubeconfig, so that asking for one skips the service account, as in kubectl.
  if (!context && inPod(environment)) return serviceAccountSource(environment, serviceAccount)
  const home = environment['HOME']
  const fallback = home ? join(home, '.kube', 'config') : undefined
  if (fallback === undefined || !(await isFileThere(fallback))) {
    const tried = `KUBECONFIG and the pod's service account are not set${fallback ? `, and there is no ${fallback}` : ''}`
    throw new KubeconfigError('', '', `no kubeconfig found: ${tried}; name one with --kubeconfig`)
  }
  return kubeconfigSource([fallback], context)
}

function noContext(context: string): KubeconfigError {
  return new KubeconfigError('', '', `context "${context}" needs a kubeconfig; the pod's service account has none`)
}

/** `variable`: the list came from there, and files that it names may be absent as long as one is there. */
function kubeconfigSource(
  paths: readonly string[],
  context: string | undefined,
  { variable, obey }: { readonly variable?: string; readonly obey?: SettingsOptions['obey'] } = {},
): SettingsSource {
  // Parsed again only when the text differs: a daemon comes here once a minute for as long as it runs.
  let parsed: { digest: string; settings: ContextSettings } | undefined
  const read = async (files: CredentialFiles): Promise<ContextSettings> => {
    const present = variable === undefined ? paths : await existing(paths)
    if (present.length === 0) {
      throw new KubeconfigError('', variable ?? '', `none of its files exists: ${paths.join(', ')}`)
    }
    if (obey) await Promise.all(present.map((path) => obey({ what: 'kubeconfig', path })))
    const texts = await Promise.all(
      present.map((path) =>
        files.read(
          path,
          () => undefined,
          (problem) => new KubeconfigError('', '', problem),
          decodeYaml,
        ),
      ),
    )
    const digest = createHash('sha256')
      .update(JSON.stringify([present, texts]))
      .digest('hex')
    if (parsed?.digest === digest) return parsed.settings
    const documents = await Promise.all(present.map((path, i) => parseKubeconfig(texts[i] ?? '', path)))
    parsed = { digest, settings: resolveContext(documents, context || undefined) }
    return parsed.settings
  }
  return { origin: `kubeconfig ${paths.join(':')}`, paths, read }
}

async function existing(paths: readonly string[]): Promise<string[]> {
  const found = await Promise.all(paths.map(isFileThere))
  return paths.filter((_, index) => found[index])
}

async function isFileThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    (error: unknown) => (error as NodeJS.ErrnoException).code !== 'ENOENT',
  )
}

/** Whether we are in a pod: kubelet sets these two variables in every container. */
function inPod(environment: Environment): boolean {
  return Boolean(environment['KUBERNETES_SERVICE_HOST'] && environment['KUBERNETES_SERVICE_PORT'])
}

/** The pod's own service account (client-go/rest/config.go, InClusterConfig). Throws KubeconfigError outside a pod. */
function serviceAccountSource(environment: Environment, directory: string): SettingsSource {
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
  const field = new KubeconfigField('', 'service account', undefined)
  const file = (name: string) => ({ type: 'file' as const, path: join(directory, name), field })
  const read = async (): Promise<ContextSettings> => ({
    context: '',
    namespace: await readOwnNamespace(join(directory, 'namespace')),
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
async function readOwnNamespace(path: string): Promise<string | undefined> {
  const text = await readFile(path, 'utf8').catch(() => '')
  return text.trim() || undefined
}
