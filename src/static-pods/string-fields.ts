/*
 * Where a Pod has text, kubelet's parser turns an unquoted number or boolean into text (sigs.k8s.io/yaml, by the type of
 * the field it decodes into): `value: 8080` is accepted. JSON that we write must have it as text already, or kubelet
 * would refuse what it took from the YAML.
 */

/** Fields whose value is text wherever they stand in a Pod. */
const textFields = new Set([
  ...['apiVersion', 'kind', 'name', 'generateName', 'namespace', 'uid', 'resourceVersion'],
  ...['image', 'imagePullPolicy', 'workingDir', 'value', 'key', 'operator', 'effect', 'path', 'host', 'scheme'],
  ...['mountPath', 'subPath', 'subPathExpr', 'mountPropagation', 'recursiveReadOnly', 'terminationMessagePath'],
  ...['restartPolicy', 'dnsPolicy', 'nodeName', 'serviceAccountName', 'serviceAccount', 'hostname', 'subdomain'],
  ...['schedulerName', 'priorityClassName', 'runtimeClassName', 'preemptionPolicy', 'ip', 'protocol', 'hostIP'],
  ...['type', 'medium', 'level', 'role', 'user', 'localhostProfile', 'fieldPath', 'resource', 'topologyKey'],
  ...['procMount', 'service', 'reference', 'pullPolicy', 'prefix', 'server', 'devicePath', 'terminationMessagePolicy'],
])

/** Lists of text. */
const textLists = new Set([
  ...['command', 'args', 'values', 'add', 'drop', 'hostnames', 'nameservers', 'searches', 'finalizers'],
])

/** Maps from text to text; quantities (limits, requests) may be numbers, and kubelet reads them so. */
const textMaps = new Set(['labels', 'annotations', 'nodeSelector', 'matchLabels'])

/** The same value, with text where a Pod has text. */
export function withText(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item: unknown): unknown => withText(item))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, field(key, inner)]))
}

function field(key: string, value: unknown): unknown {
  if (textFields.has(key)) return isScalar(value) ? String(value) : withText(value)
  if (textLists.has(key) && Array.isArray(value)) {
    return value.map((item: unknown): unknown => (isScalar(item) ? String(item) : withText(item)))
  }
  if (textMaps.has(key) && typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const entries = Object.entries(value).map(([name, text]) => [name, isScalar(text) ? String(text) : text] as const)
    return Object.fromEntries(entries)
  }
  return withText(value)
}

function isScalar(value: unknown): value is number | boolean {
  return typeof value === 'number' || typeof value === 'boolean'
}
