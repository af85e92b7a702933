/** Reads names of the Kubernetes API. */
import type { ValueType } from './field.js'
import { isDataKey, isLabel, isObjectName, namePatterns } from '../kubernetes-names.js'
import type { ObjectKind, ObjectReference } from '../objects/types.js'
import { quote } from '../message-text.js'
import type { Value } from './value.js'
import { nameLike, textType } from './value-types.js'

/** The namespace of names that have none, and the names that met none. */
export interface NamespaceDefault {
  readonly namespace: string | undefined
  /** `name`: undefined where all objects of a namespace are meant. */
  readonly unqualified: { readonly value: Value; readonly name: string | undefined }[]
  /** The source reports of all objects which labels they have. */
  readonly selectable: boolean
}

export const namespaceName: ValueType<string> = nameLike(
  'kube-system',
  { type: 'string', pattern: `^${namePatterns.label}$` },
  asNamespace,
)

function asNamespace(text: string, value: Value): string | undefined {
  if (isLabel(text)) return text
  return value.wrong(`${quote(text)} is not a namespace`, "it is lower-case letters, digits and '-', at most 63")
}

/** `[NAMESPACE/]NAME`. A name that has no namespace and gets none is noted in `unqualified`. */
export function referenceTo(kind: ObjectKind): ValueType<ObjectReference, NamespaceDefault> {
  const pattern = `^(?:${namePatterns.label}/)?${namePatterns.objectName}$`
  return textType({ schema: () => ({ type: 'string', pattern }) }, (text, value, defaults: NamespaceDefault) => {
    const parts = text.split('/')
    if (parts.length > 2) return value.wrong(`${quote(text)} has more than one '/'`, 'write NAMESPACE/NAME or NAME')
    const name = parts.at(-1) ?? ''
    const namespace = parts.length === 2 ? (parts[0] ?? '') : defaults.namespace
    if (!isObjectName(name)) {
      const rule = "it is lower-case letters, digits, '-' and '.', at most 253"
      return value.wrong(`${quote(name)} is not the name of a ${kind}`, rule)
    }
    if (namespace === undefined) {
      defaults.unqualified.push({ value, name })
      return undefined
    }
    return asNamespace(namespace, value) === undefined ? undefined : { kind, namespace, name }
  })
}

/** A key of an object. */
export const dataKey: ValueType<string> = nameLike(
  'tls.crt',
  { type: 'string', pattern: `^${namePatterns.dataKey}$` },
  (text, value) => {
    if (isDataKey(text)) return text
    const rule = "it is letters, digits, '-', '_' and '.', at most 253, and does not start with '..'"
    return value.wrong(`${quote(text)} is not a key`, rule)
  },
)
