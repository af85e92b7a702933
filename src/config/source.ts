import { readNamespace } from './object-names.js'
import { readNodePath } from './paths.js'
import type { SourceConfiguration } from './types.js'
import type { MappingValue, Value } from './value.js'

export interface ReadSource {
  readonly source: SourceConfiguration | undefined
  /** source.namespace. */
  readonly namespace: string | undefined
  /** Where the objects' directory is named, for the checks against the targets. */
  readonly filesPath: Value | undefined
}

const types = ['kubernetes', 'files'] as const

/** Reads `source`; `base` is the directory that relative paths start at. */
export function readSource(value: Value | undefined, base: string): ReadSource {
  const nothing = { source: undefined, namespace: undefined, filesPath: undefined }
  const source = value?.mapping(['namespace', ...types], {
    kubeconfig: 'it belongs to kubernetes: write kubernetes: { kubeconfig: … }',
    path: 'it belongs to files: write files: { path: … }',
  })
  if (source === undefined) return nothing
  const namespaceValue = source.field('namespace')
  // One that is wrong is told once, and not again with each name that it would have been for.
  const namespace = namespaceValue && (readNamespace(namespaceValue) ?? 'default')
  const type = source.exactlyOne(types)
  if (type === undefined) return { ...nothing, namespace }
  if (type === 'kubernetes') return { ...nothing, namespace, source: readKubernetes(source, base) }
  const filesPath = source.field('files')?.mapping(['path'])?.required('path', './objects')
  const path = filesPath && readNodePath(filesPath, base)
  if (path === undefined) return { namespace, filesPath, source: undefined }
  return {
    namespace,
    filesPath,
    source: namespace === undefined ? { type, path } : { type, path, namespace },
  }
}

function readKubernetes(source: MappingValue, base: string): SourceConfiguration | undefined {
  const kubernetes = source
    .field('kubernetes', 'write kubernetes: {} for the service account')
    ?.mapping(['kubeconfig', 'context'], {
      namespace: 'it belongs to source, beside kubernetes',
    })
  if (kubernetes === undefined) return undefined
  const kubeconfigValue = kubernetes.field('kubeconfig')
  const kubeconfig = kubeconfigValue && readNodePath(kubeconfigValue, base)
  const contextValue = kubernetes.field('context')
  const context = contextValue?.text()
  if (contextValue !== undefined && !kubernetes.has('kubeconfig')) {
    contextValue.wrong('is given without a kubeconfig', 'the service account of a pod has no contexts')
  }
  return context === undefined ? { type: 'kubernetes', kubeconfig } : { type: 'kubernetes', kubeconfig, context }
}
