/** How each kind of file is read: as strictly as its own readers read it, and no differently. */
import type { DocumentOptions, ParseOptions, ScalarTag, SchemaOptions } from 'yaml'

export type Dialect = 'any' | 'configuration' | 'kubeconfig' | 'objects' | 'manifest'

/**
 * What the manifest reader has beyond YAML 1.2, as kubelet (sigs.k8s.io/yaml over go.yaml.in/yaml/v2) has it, where it matters to a
 * pod: `0644` is octal (defaultMode), and `yes` and `on` are booleans; but `22:22` is text.
 */
const octal: ScalarTag = {
  tag: 'tag:yaml.org,2002:int',
  default: true,
  format: 'OCT',
  test: /^[-+]?0[0-7_]+$/,
  resolve: (text) => {
    const digits = text.replace(/[-+_]/g, '')
    return (text.startsWith('-') ? -1 : 1) * Number.parseInt(digits, 8)
  },
}

const word: ScalarTag = {
  tag: 'tag:yaml.org,2002:bool',
  default: true,
  test: /^(?:y|Y|yes|Yes|YES|on|On|ON|n|N|no|No|NO|off|Off|OFF)$/,
  resolve: (text) => /^(?:y|on)/i.test(text),
}

export const dialects = {
  /** Whatever some reader takes for YAML. */
  any: { merge: true },
  /** YAML 1.2 and nothing else: merge keys are refused, and a field that stands twice is found where its place is known. */
  configuration: { version: '1.2', schema: 'core', merge: false, strict: true, uniqueKeys: false },
  /** kubectl merges (`<<`). */
  kubeconfig: { merge: true },
  /** Keys such as `123` and `true` are strings in Kubernetes. */
  objects: { stringKeys: true },
  manifest: { stringKeys: true, merge: true, customTags: (tags) => [octal, word, ...tags] },
} as const satisfies Record<Dialect, ParseOptions & DocumentOptions & SchemaOptions>
