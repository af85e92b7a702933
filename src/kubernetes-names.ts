/** Names that the Kubernetes API allows. Source: k8s.io/apimachinery/pkg/util/validation. */

const label = '[a-z0-9](?:[-a-z0-9]*[a-z0-9])?'
const subdomain = `${label}(?:\\.${label})*`

/** Characters of an object's name, and of a key. */
export const longestName = 253
const longestLabel = 63

/** The same rules as patterns. */
export const namePatterns = {
  label: `(?=[^/]{1,${longestLabel}}(?:/|$))${label}`,
  objectName: `(?=[^/]{1,${longestName}}$)${subdomain}`,
  dataKey: `(?!\\.\\.|\\.$)[-._a-zA-Z0-9]{1,${longestName}}`,
} as const

const subdomainPattern = new RegExp(`^${subdomain}$`)
const labelPattern = new RegExp(`^${label}$`)
const dataKeyPattern = new RegExp(`^${namePatterns.dataKey}$`)

/** A DNS-1123 subdomain, as the names of Secrets, ConfigMaps and pods are. */
export function isObjectName(text: string): boolean {
  return text.length <= longestName && subdomainPattern.test(text)
}

/** A DNS-1123 label, as the names of namespaces, containers and volumes are. */
export function isLabel(text: string): boolean {
  return text.length <= longestLabel && labelPattern.test(text)
}

/**
 * A key of a Secret or a ConfigMap, which is a safe file name, too: '..' and what starts with it would be taken for the links of an
 * atomic volume, or climb out.
 */
export function isDataKey(text: string): boolean {
  return dataKeyPattern.test(text)
}

/** Characters of a resourceVersion: a number of 64 bits has 20. */
export const longestVersion = 64

/**
 * A uid or a resourceVersion. The API calls both opaque; those of etcd are decimal, and uids are UUIDs, or a Node's name. What a query, a path and
 * a command line would read as something else is none: `..`, a slash, an escape, a flag.
 */
export function isIdentifier(text: string, longest: number): boolean {
  return text.length <= longest && /^[A-Za-z0-9][-\w.:~]*$/.test(text)
}

/** The value of a label, which may be empty. */
export function isLabelValue(text: string): boolean {
  return text.length <= longestLabel && /^(?:[A-Za-z0-9](?:[-_.A-Za-z0-9]*[A-Za-z0-9])?)?$/.test(text)
}

/** The key of a label: a name, or a DNS subdomain, a slash and a name. */
export function isQualifiedName(text: string): boolean {
  const [name = '', prefix, ...others] = text.split('/').reverse()
  return others.length === 0 && name !== '' && isLabelValue(name) && (prefix === undefined || isObjectName(prefix))
}

/** The name of a port (IANA_SVC_NAME). */
export function isPortName(text: string): boolean {
  return /^(?=.*[a-z])(?!.*--)[a-z0-9](?:[-a-z0-9]{0,13}[a-z0-9])?$/.test(text)
}

/** The namespace of events about a Node, which is in none. */
export const nodeEventsNamespace = 'default'

/** Members of one map or items of one list that holdfast reads of a server's answer; `limits.keys` cannot be more. */
export const mostMembers = 32_768
