import { mappingOf, onlyWhere, type Field, type Fields, type ValueType } from './field.js'
import { namespaceName } from './object-names.js'
import { nodePath, type PathContext } from './paths.js'
import { integer, oneOf, text } from './value-types.js'
import type { Value } from './value.js'

/** The settings of each kind of source. A new kind starts here: the compiler then names each place that lacks it. */
interface SourceSettings {
  readonly kubernetes: {
    readonly kubeconfig: string | undefined
    readonly context?: string
    /** Without a kubeconfig, a daemon takes the pod's service account alone. */
    readonly search?: 'kubectl' | 'service-account'
    /** One watch for each object, or for all Secrets and for all ConfigMaps of a namespace. */
    readonly watch: 'objects' | 'namespaces'
    /** Requests a second, on average. */
    readonly qps: number
    /** Requests at once, after a pause. */
    readonly burst: number
  }
  readonly files: {
    readonly path: string
    /** source.namespace: of objects in files that name none. */
    readonly namespace?: string
  }
}

export type SourceType = keyof SourceSettings

/** Beyond it, a limit is none. */
const highestRate = 10_000

/** A source of one kind; without one, of any. */
export type SourceConfiguration<Type extends SourceType = SourceType> = {
  [Each in Type]: { readonly type: Each } & SourceSettings[Each]
}[Type]

export interface ReadSource {
  readonly source: SourceConfiguration | undefined
  /** source.namespace. */
  readonly namespace: string | undefined
  /** Where the objects' directory is named, for the checks against the targets. */
  readonly filesPath: Value | undefined
}

type ReadKind<Type extends SourceType> = Pick<ReadSource, 'filesPath'> & {
  readonly source: SourceConfiguration<Type> | undefined
}

const filesFields = {
  path: {
    type: nodePath,
    description: 'a directory of Secret and ConfigMap manifests, YAML or JSON, watched',
    required: './objects',
  },
} satisfies Fields<PathContext>

const files: ValueType<ReadKind<'files'>, PathContext> = mappingOf(
  { fields: filesFields },
  ({ read: { path }, at: { path: filesPath } }) => ({
    filesPath,
    source: path === undefined ? undefined : { type: 'files', path },
  }),
)

const kubernetesFields = {
  kubeconfig: { type: nodePath, description: "a kubeconfig; default: the pod's service account" },
  context: { type: text, description: 'of the kubeconfig; default: its `current-context`' },
  watch: {
    type: oneOf(['objects', 'namespaces']),
    description: 'one watch for each object, or one for all Secrets and one for all ConfigMaps of a namespace',
    default: 'objects',
  },
  // controller-runtime's defaults, which most agents on nodes are built with; client-go's own 5 and 10 let 50 watches wait for 8 s,
  // and kubelet's 50 and 100 are for one process of a node, not for one of several.
  qps: { type: integer(1, highestRate), description: 'requests per second, on average', default: 20 },
  burst: { type: integer(1, highestRate), description: 'requests at once, after a pause', default: 30 },
} satisfies Fields<PathContext>

const kubernetes: ValueType<ReadKind<'kubernetes'>, PathContext> = mappingOf(
  {
    fields: kubernetesFields,
    misplaced: { namespace: 'it belongs to source, beside kubernetes' },
    rules: [
      {
        check: ({ wasGiven, at }) => {
          if (wasGiven('kubeconfig')) return
          at.context?.wrong('is given without a kubeconfig', 'the service account of a pod has no contexts')
        },
        schema: onlyWhere('context', { kubeconfig: {} }),
      },
    ],
  },
  ({ read: { context, ...others } }) => ({
    filesPath: undefined,
    source: { type: 'kubernetes', ...others, ...(context !== undefined && { context }) },
  }),
)

const sources: { readonly [Type in SourceType]: Field<ReadKind<Type>, PathContext> } = {
  kubernetes: {
    type: kubernetes,
    description: "the API server; {} for the pod's service account",
    withoutValue: 'write kubernetes: {} for the service account',
  },
  files: { type: files, description: 'a directory of manifests; no cluster is needed' },
}

const fields = {
  namespace: {
    type: namespaceName,
    description:
      "for names that have none; default: that of the kubeconfig's context or of the service account; for files, `default`",
  },
} satisfies Fields<unknown>

export const source: ValueType<ReadSource, PathContext> = mappingOf(
  {
    fields,
    choices: sources,
    known: ['namespace', 'kubernetes', 'files'],
    misplaced: {
      kubeconfig: 'it belongs to kubernetes: write kubernetes: { kubeconfig: … }',
      path: 'it belongs to files: write files: { path: … }',
    },
  },
  ({ read, at }, _value, _context, chosen) => {
    // A wrong namespace is reported once, and not again with each name that would lie in it.
    const namespace = at.namespace && (read.namespace ?? 'default')
    const { source, filesPath } = chosen?.read ?? {}
    const named = source?.type === 'files' && namespace !== undefined ? { ...source, namespace } : source
    return { namespace, source: named, filesPath }
  },
)
