/** The form of the manifests that kubelet judges. */

export interface KubeletCase {
  readonly what: string
  readonly text: string
  /** Whether kubelet runs the pod. */
  readonly runs: boolean
  /** holdfast's answer where it refuses. */
  readonly refusal?: RegExp
}

export function runs(what: string, text: string): KubeletCase {
  return { what, text, runs: true }
}

export function refused(what: string, text: string, refusal: RegExp): KubeletCase {
  return { what, text, runs: false, refusal }
}

/** kubelet runs the pod, and holdfast refuses it. */
export function stricter(what: string, text: string, refusal: RegExp): KubeletCase {
  return { what, text, runs: true, refusal }
}

const head = 'apiVersion: v1\nkind: Pod\n'
const spec = 'spec: {containers: [{name: web, image: "web:1"}]}\n'
export const plain = `${head}metadata: {name: web}\n${spec}`

/** A container with further fields, a pod with further fields of its spec, in YAML. */
export const withContainer = (fields: string): string =>
  `${head}metadata: {name: web}\nspec:\n  containers:\n  - {name: web, image: "web:1", ${fields}}\n`
export const withSpec = (fields: string): string =>
  `${head}metadata: {name: web}\nspec:\n  containers: [{name: web, image: "web:1"}]\n  ${fields}\n`
export const withMetadata = (fields: string): string => `${head}metadata: {name: web, ${fields}}\n${spec}`
export const json = (fields: string): string =>
  `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[{"name":"web","image":"web:1"}],${fields}}}`
