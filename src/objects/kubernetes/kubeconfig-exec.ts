import { dirname, resolve } from 'node:path'
import type { Field } from './kubeconfig-field.js'

/** A credential plugin, as a kubeconfig describes it. */
export interface ExecSettings {
  readonly apiVersion: string
  /** A bare name is looked up in PATH; anything with a slash counts from the kubeconfig's directory. */
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly provideClusterInfo: boolean
  readonly installHint: string | undefined
  readonly field: Field
}

const versions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1']

/** Throws KubeconfigError with the field's place. */
export function readExec(field: Field): ExecSettings {
  const version = field.get('apiVersion')
  const apiVersion = version.requiredText()
  if (!versions.includes(apiVersion)) throw version.fault(`must be ${versions.join(' or ')}`)
  const command = field.get('command').requiredText()
  checkInteractiveMode(field.get('interactiveMode'), apiVersion)
  const env: [string, string][] = field
    .get('env')
    .list()
    .map((item) => [item.get('name').requiredText(), item.get('value').text() ?? ''])
  return {
    apiVersion,
    command: command.includes('/') ? resolve(dirname(field.file), command) : command,
    args: field
      .get('args')
      .list()
      .map((item) => item.text() ?? ''),
    env: Object.fromEntries(env),
    provideClusterInfo: field.get('provideClusterInfo').flag(),
    installHint: field.get('installHint').text(),
    field,
  }
}

function checkInteractiveMode(field: Field, apiVersion: string): void {
  const mode = field.text()
  if (mode === 'Never' || mode === 'IfAvailable') return
  // Only v1beta1 has a default, IfAvailable (client-go/tools/clientcmd/api/v1/defaults.go).
  if (mode === undefined && apiVersion.endsWith('/v1beta1')) return
  if (mode === undefined) throw field.fault('is missing; Never or IfAvailable')
  if (mode === 'Always') {
    throw field.fault('is Always, and there is no terminal to ask on; only Never and IfAvailable are supported')
  }
  throw field.fault('must be Never or IfAvailable')
}
