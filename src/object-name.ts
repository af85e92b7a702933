/** `Secret kube-system/serving-cert`: the same text in logs, errors, status and as a map key. */
export function objectName({ kind, namespace, name }: Readonly<Record<'kind' | 'namespace' | 'name', string>>): string {
  return `${kind} ${namespace}/${name}`
}
