/** The chart of deploy/helm, rendered and installed by helm, and the objects to compare it with. */
import { execFile } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parse, parseAllDocuments } from 'yaml'
import { deploy } from '../deploy/manifests.js'
import { findProgram } from './assets.js'
import type { Cluster } from './cluster.js'
import { workingDirectory } from './guard.js'

export interface ApiObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: Record<string, unknown> & { readonly name: string; readonly namespace?: string }
  readonly [field: string]: unknown
}

/** `helm VERB RELEASE CHART`, in the namespace `holdfast`. */
export async function helm(
  verb: string,
  args: readonly string[] = [],
  values: object = {},
  release = 'holdfast',
): Promise<string> {
  const directory = mkdtempSync(join(workingDirectory, 'helm-'))
  writeFileSync(join(directory, 'values.json'), JSON.stringify(values))
  const chart = verb === 'uninstall' ? [] : [join(deploy, 'helm/holdfast'), '--values', join(directory, 'values.json')]
  const words = [verb, release, ...chart, '--namespace', 'holdfast', ...args]
  return (await promisify(execFile)(await findProgram('helm'), words, { env: { HOME: directory } })).stdout
}

/** These objects as the server would make them, with its defaults; it checks every field, and keeps nothing. */
export async function created(cluster: Cluster, text: string): Promise<ApiObject[]> {
  const flags = ['--dry-run=server', '--validate=strict', '--output=yaml', '--filename=-']
  return objectsOf(await cluster.kubectl(['create', ...flags], text))
}

export function objectsOf(text: string): ApiObject[] {
  const found = parseAllDocuments(text).map((document) => document.toJS() as ApiObject | null)
  return found.filter((object) => object !== null)
}

/**
 * Kustomize names the ConfigMap after its content; helm has an annotation for that. The labels of a release are helm's alone, and those
 * of metadata are not compared.
 */
export const unhashed = (text: string): string =>
  text
    .replaceAll(/\bholdfast-[a-z0-9]{10}\b/g, 'holdfast')
    .replaceAll(/^ +(?:checksum\/configuration|app\.kubernetes\.io\/instance): .*\n/gm, '')

/** Objects by kind and name, without the fields that the server alone sets; the configuration as data. */
export function comparable(objects: readonly ApiObject[]): Record<string, unknown> {
  const entries = objects.map((object) => {
    const { kind, metadata, data } = object
    const text = (data as Record<string, string> | undefined)?.['holdfast.yaml']
    const compared = {
      ...object,
      metadata: { ...metadata, labels: undefined, uid: undefined, creationTimestamp: undefined },
      status: undefined,
      data: text === undefined ? data : (parse(text) as unknown),
    }
    return [`${kind} ${metadata.namespace ?? ''}/${metadata.name}`, compared] as const
  })
  return Object.fromEntries(entries)
}
