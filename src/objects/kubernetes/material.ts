import { dirname, resolve } from 'node:path'
import type { Field } from './kubeconfig-field.js'

/** A certificate, key or token that stands in the kubeconfig itself, or in a file that may be replaced at any time. */
export type Material =
  | { readonly type: 'inline'; readonly text: string; readonly field: Field }
  | { readonly type: 'file'; readonly path: string; readonly field: Field }

/** A path counts from the directory of the kubeconfig that names it. */
export function fileMaterial(field: Field): Material | undefined {
  const path = field.text()
  return path === undefined ? undefined : { type: 'file', path: resolve(dirname(field.file), path), field }
}

/** The pair `NAME` and `NAME-data` of a kubeconfig, of which one at most may be set. Throws KubeconfigError. */
export function materialPair(
  entry: Field,
  name: string,
  check: (text: string, field: Field) => void,
): Material | undefined {
  const field = entry.get(`${name}-data`)
  const text = field.base64()
  const file = fileMaterial(entry.get(name))
  if (text === undefined) return file
  if (file) throw field.fault(`${name} is set too; keep one of the two`)
  check(text, field)
  return { type: 'inline', text, field }
}
