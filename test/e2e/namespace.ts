/** One namespace of the cluster: its objects, and accounts that may read some of them. */
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import type { ApiObject } from './api-client.js'
import type { ApiServer } from './api-server.js'
import { writeKubeconfig } from './kubeconfig.js'
import { granted, type Rule } from './rights.js'

/** Which objects an account may get, list and watch: by name, and no others, or all. */
export interface Allowed {
  readonly all?: true
  readonly secrets?: readonly string[]
  readonly configMaps?: readonly string[]
}

export class Namespace {
  private marks = 0

  constructor(
    readonly name: string,
    private readonly api: ApiServer,
    private readonly directory: string,
  ) {}

  private get path(): string {
    return `/api/v1/namespaces/${this.name}`
  }

  /** Creates the Secret, or replaces it whole. Values are text. */
  putSecret(name: string, stringData: Record<string, string>, labels?: object): Promise<ApiObject> {
    return this.put('secrets', name, { stringData }, labels)
  }

  /** Creates the ConfigMap, or replaces it whole. */
  putConfigMap(name: string, data: Record<string, string>, binaryData = {}): Promise<ApiObject> {
    return this.put('configmaps', name, { data, binaryData })
  }

  private async put(resource: string, name: string, content: object, labels?: object): Promise<ApiObject> {
    const object = { metadata: { name, labels }, ...content }
    const replaced = await this.api.admin.call('PUT', `${this.path}/${resource}/${name}`, object)
    if (replaced.status === 200) return replaced.body as ApiObject
    return this.api.admin.demand('POST', `${this.path}/${resource}`, object)
  }

  async patchSecret(name: string, patch: object): Promise<ApiObject> {
    return this.api.admin.demand('PATCH', `${this.path}/secrets/${name}`, patch, {
      'content-type': 'application/merge-patch+json',
    })
  }

  async deleteSecret(name: string): Promise<void> {
    await this.api.admin.demand('DELETE', `${this.path}/secrets/${name}`)
  }

  /** A service account that may read these objects, from now on. */
  async createAccount(name: string, allowed: Allowed): Promise<void> {
    const mark = this.mark()
    await this.api.admin.demand('POST', `${this.path}/serviceaccounts`, { metadata: { name } })
    const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${this.name}`
    await this.api.admin.demand('POST', `${rbac}/roles`, { metadata: { name }, rules: [...rules(allowed), mark] })
    await this.api.admin.demand('POST', `${rbac}/rolebindings`, {
      metadata: { name },
      subjects: [{ kind: 'ServiceAccount', namespace: this.name, name }],
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
    })
    await this.inForce(name, mark)
  }

  /** Gives the account these rights from now on, and no others. */
  async allow(account: string, allowed: Allowed): Promise<void> {
    const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/${this.name}/roles/${account}`
    const mark = this.mark()
    await this.api.admin.demand('PUT', path, { metadata: { name: account }, rules: [...rules(allowed), mark] })
    await this.inForce(account, mark)
  }

  /** A rule that no Role had before: an account with it has the whole present Role, and nothing of an earlier one. */
  private mark(): Rule {
    return { apiGroups: ['e2e.example'], resources: ['marks'], resourceNames: [`mark-${++this.marks}`], verbs: ['get'] }
  }

  private inForce(account: string, mark: Rule): Promise<void> {
    return granted(this.api.admin, `system:serviceaccount:${this.name}:${account}`, [mark], this.name)
  }

  /** A token of the account. With `boundTo`, a Secret or a Node: it is invalid once that is deleted. */
  async token(account: string, boundTo?: ApiObject, kind: 'Secret' | 'Node' = 'Secret'): Promise<string> {
    const boundObjectRef = boundTo && {
      apiVersion: 'v1',
      kind,
      name: boundTo.metadata.name,
      uid: boundTo.metadata.uid,
    }
    const request = { spec: { expirationSeconds: 3600, boundObjectRef } }
    const answer = await this.api.admin.demand('POST', `${this.path}/serviceaccounts/${account}/token`, request)
    return (answer as unknown as { status: { token: string } }).status.token
  }

  /** A kubeconfig file for a user; `server` and `cluster` say how to get there, if not straight. */
  kubeconfig(user: object, { server = this.api.url, cluster = {} } = {}): string {
    const file = join(mkdtempSync(join(this.directory, 'kubeconfig-')), 'kubeconfig')
    writeKubeconfig(file, { server, authority: this.api.authority.certificate, user, cluster })
    return file
  }
}

function rules({ all, secrets = [], configMaps = [] }: Allowed): Rule[] {
  const verbs = ['get', 'list', 'watch']
  if (all) return [{ apiGroups: [''], resources: ['secrets', 'configmaps'], verbs }]
  // A rule with no resourceNames allows all: a kind of which nothing is allowed gets no rule.
  return [
    { resources: ['secrets'], resourceNames: secrets },
    { resources: ['configmaps'], resourceNames: configMaps },
  ]
    .filter((rule) => rule.resourceNames.length > 0)
    .map((rule) => ({ apiGroups: [''], verbs, ...rule }))
}
