import { readNamespace } from './object-names.js'
import { readNodePath } from './paths.js'
import type { MappingValue, Value } from './value.js'

/** What each kind of source is configured with. A new kind starts here: the compiler then names what it lacks. */
interface SourceSettings {
  readonly kubernetes: {
    readonly kubeconfig: string | undefined
    readonly context?: string
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

/**
 * controller-runtime's, which most agents on nodes are built with; client-go's own 5 and 10 let 50 watches wait for 8 s, and kubelet's
 * 50 and 100 are for one process of a node, not for one of several.
 */
const defaultRate = { qps: 20, burst: 30 }

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

interface SourceContext {
  /** The directory that relative paths start at. */
  readonly base: string
  readonly namespace: string | undefined
}

type ReadKind = Pick<ReadSource, 'source' | 'filesPath'>

/** Reads the field of each kind out of the mapping `source`. */
const readers: Readonly<Record<SourceType, (source: MappingValue, context: SourceContext) => ReadKind>> = {
  kubernetes: readKubernetes,
  files: readFiles,
}

const types = Object.keys(readers) as SourceType[]

/** Reads `source`; `base` is the directory that relative paths start at. */
export function readSource(value: Value | undefined, base: string): ReadSource {
  const nothing = { source: undefined, namespace: undefined, filesPath: undefined }
  const source = value?.mapping(['namespace', ...types], {
    kubeconfig: 'it belongs to kubernetes: write kubernetes: { kubeconfig: … }',
    path: 'it belongs to files: write files: { path: … }',
  })
  if (source === undefined) return nothing
  const namespaceValue = source.field('namespace')
  // One that is wrong is reported once, and not again with each name that it would have been for.
  const namespace = namespaceValue && (readNamespace(namespaceValue) ?? 'default')
  const type = source.exactlyOne(types)
  if (type === undefined) return { ...nothing, namespace }
  return { namespace, ...readers[type](source, { base, namespace }) }
}

function readFiles(source: MappingValue, { base, namespace }: SourceContext): ReadKind {
  const filesPath = source.field('files')?.mapping(['path'])?.required('path', './objects')
  const path = filesPath && readNodePath(filesPath, base)
  if (path === undefined) return { filesPath, source: undefined }
  return { filesPath, source: { type: 'files', path, ...(namespace !== undefined && { namespace }) } }
}

function readKubernetes(source: MappingValue, { base }: SourceContext): ReadKind {
  const filesPath = undefined
  const kubernetes = source
    .field('kubernetes', 'write kubernetes: {} for the service account')
    ?.mapping(['kubeconfig', 'context', 'watch', 'qps', 'burst'], {
      namespace: 'it belongs to source, beside kubernetes',
    })
  if (kubernetes === undefined) return { source: undefined, filesPath }
  const kubeconfigValue = kubernetes.field('kubeconfig')
  const kubeconfig = kubeconfigValue && readNodePath(kubeconfigValue, base)
  const contextValue = kubernetes.field('context')
  const context = contextValue?.text()
  if (contextValue !== undefined && !kubernetes.has('kubeconfig')) {
    contextValue.wrong('is given without a kubeconfig', 'the service account of a pod has no contexts')
  }
  const watch = kubernetes.field('watch')?.oneOf(['objects', 'namespaces'] as const) ?? 'objects'
  const rate = {
    qps: kubernetes.field('qps')?.integer(1, highestRate) ?? defaultRate.qps,
    burst: kubernetes.field('burst')?.integer(1, highestRate) ?? defaultRate.burst,
  }
  return {
    source: { type: 'kubernetes', kubeconfig, watch, ...rate, ...(context !== undefined && { context }) },
    filesPath,
  }
}
