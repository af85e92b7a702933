/** Directories and objects as tests describe them. */
import { objectName } from '../../src/message-text.js'
import { defaultLimits } from '../../src/config/directory.js'
import type { CombinedContent, Content, DirectoryConfiguration, ObjectContent } from '../../src/config/types.js'
import type { KeptObject } from '../../src/directories/types.js'
import type { KubernetesObject, LoadedState, ObjectReference } from '../../src/objects/types.js'

export function secret(name: string): ObjectReference {
  return { kind: 'Secret', namespace: 'ns', name }
}

export function configMap(name: string): ObjectReference {
  return { kind: 'ConfigMap', namespace: 'ns', name }
}

export function directoryOf(
  contents: readonly Content[],
  more: Partial<DirectoryConfiguration> = {},
): DirectoryConfiguration {
  return {
    path: '/srv/certs',
    place: 'directories[0]',
    publish: 'exchange',
    adopt: false,
    mode: 0o755,
    fileMode: 0o600,
    owner: undefined,
    attributes: 'set',
    contents,
    onMissing: 'keep',
    onDrop: 'keep',
    retire: 'immediately',
    retireTimeout: 3_600_000,
    history: { keep: 0, maxAge: null },
    debounce: { quiet: 0, atMost: 0 },
    minInterval: 1_000,
    hookInterval: 10_000,
    limits: defaultLimits,
    validate: [],
    beforePublish: [],
    afterPublish: [],
    ...more,
  }
}

export function whole(reference: ObjectReference, more: Partial<ObjectContent> = {}): ObjectContent {
  return {
    type: 'object',
    place: 'contents[0]',
    reference,
    into: '',
    optional: false,
    items: undefined,
    ...more,
  }
}

export function combine(
  path: string,
  from: readonly (readonly [ObjectReference, string])[],
  more: Partial<CombinedContent> = {},
): CombinedContent {
  const parts = from.map(([reference, key]) => ({ reference, key }))
  return {
    type: 'combine',
    place: 'contents[9]',
    path,
    from: parts,
    mode: undefined,
    optional: false,
    ...more,
  }
}

export function present(
  reference: ObjectReference,
  data: Readonly<Record<string, string | Uint8Array>>,
  more: Partial<KubernetesObject> = {},
): readonly [ObjectReference, LoadedState] {
  const object: KubernetesObject = {
    reference,
    uid: `uid-${reference.name}`,
    resourceVersion: '7',
    terminating: false,
    data: new Map(Object.entries(data).map(([key, value]) => [key, Buffer.from(value)])),
    ...more,
  }
  return [reference, { state: 'present', object }]
}

export function absent(reference: ObjectReference): readonly [ObjectReference, LoadedState] {
  return [reference, { state: 'absent' }]
}

export function unknown(reference: ObjectReference): readonly [ObjectReference, LoadedState] {
  return [reference, { state: 'unknown', reason: 'AccessDenied', message: '403 Forbidden' }]
}

export function keptOf(
  reference: ObjectReference,
  files: Readonly<Record<string, string>>,
  combined?: Readonly<Record<string, string>>,
): readonly [ObjectReference, KeptObject] {
  const recorded = {
    ...reference,
    uid: `uid-${reference.name}`,
    resourceVersion: '3',
    paths: Object.keys(files),
    ...(combined && { combined: Object.keys(combined) }),
  }
  const all = Object.entries({ ...files, ...combined })
  return [
    reference,
    {
      recorded,
      files: Object.fromEntries(all.map(([path, text]) => [path, { content: Buffer.from(text) }])),
    },
  ]
}

/** Finds by the reference's description, as sources do. */
export function lookup<Found>(
  entries: readonly (readonly [ObjectReference, Found])[],
): (reference: ObjectReference) => Found | undefined {
  const found = new Map(entries.map(([reference, value]) => [objectName(reference), value]))
  return (reference) => found.get(objectName(reference))
}
