/** How to read each kind of file: as strictly as its own readers do, and no differently. */
import type { DocumentOptions, ParseOptions, SchemaOptions } from 'yaml'

export type Dialect = 'any' | 'configuration' | 'manifest'

export const dialects = {
  /** All that some reader takes for YAML. */
  any: { merge: true },
  /** YAML 1.2 and nothing else: it has no merge keys; tree.ts, which knows places, finds a field that stands twice. */
  configuration: { version: '1.2', schema: 'core', merge: false, strict: true },
  /** Manifests, objects and kubeconfigs: texts alone, and each field as often as it stands. go-values.ts says what they mean to Kubernetes. */
  manifest: { schema: 'failsafe', resolveKnownTags: false, merge: false },
} as const satisfies Record<Dialect, ParseOptions & DocumentOptions & SchemaOptions>
