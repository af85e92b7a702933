/** A kubeconfig that a test writes and loads, its parts, and its fault. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Credentials } from '../../../src/kubernetes/credentials/credentials.js'
import { KubeconfigError } from '../../../src/kubernetes/credentials/kubeconfig-file.js'
import { issue, makeAuthority, temporaryDirectory } from '../connection/certificates.js'
import { base64, kubeconfig } from './kubeconfig-text.js'

export const authority = makeAuthority('authority')
export const client = issue(authority, { name: 'node' })
export const other = issue(authority, { name: 'other' })
export const directory = temporaryDirectory()

t.teardown(directory.remove)

export const file = join(directory.path, 'kubeconfig')
export const CANARY = 'canary-value-of-a-secret'

const cluster = {
  server: 'https://127.0.0.1:6443',
  'certificate-authority-data': base64(authority.certificate),
}

const v1 = { apiVersion: 'client.authentication.k8s.io/v1', command: 'x', interactiveMode: 'Never' }
export const pair = { 'client-certificate-data': base64(client.certificate), 'client-key-data': base64(client.key) }

export function load(text: string, context?: string) {
  writeFileSync(file, text)
  return new Credentials({ kubeconfig: file, context, environment: {} }).load()
}

export async function fault(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    if (error instanceof KubeconfigError) return error.message
    throw error
  }
  return 'no fault'
}

export const user = (fields: object) => kubeconfig(cluster, fields)
export const server = (fields: object) => kubeconfig({ ...cluster, ...fields }, { token: 'x' })
export const exec = (fields: object) => user({ exec: { ...v1, ...fields } })
