/** From a file to its documents, with places for messages, and to the Secrets and ConfigMaps that they hold. */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { objectName, quote } from '../../message-text.js'
import type { Log } from '../../log.js'
import { isIdentifier, isObjectName, longestName } from '../../kubernetes-names.js'
import { addStringData, decodeData, InvalidObjectError, record } from '../../kubernetes/reads/decode.js'
import type { Labels } from '../../label-selector.js'
import type { KubernetesObject, ObjectKind } from '../types.js'
import { FileError, fileError } from './error.js'
import { decodeYaml, notText } from '../../yaml/decode.js'
import { type Stamp, stampFrom, stampVersion } from './directory-scan.js'
import { readDocuments } from '../../yaml/go-documents.js'
import { readJson } from '../../yaml/read.js'
import { YamlError, type Position } from '../../yaml/parse.js'

/** kubectl splits a text at `---` first, and then refuses a part that begins with `...`. */
const emptyEnd = /^(?:(?<![^])|---[ \t]*(?:#.*)?\r?\n)(?:[ \t]*(?:#.*)?\r?\n)*\.\.\.(?=\s|$)/m

/** Bytes of one file: room for a List of several objects of the size that Kubernetes allows, in base64. */
const maximumFileSize = 16 * 1024 * 1024

/** An object as it stands in a file. */
export interface FileObject {
  readonly object: KubernetesObject
  /** metadata.labels */
  readonly labels: Labels
  /** `certs.yaml:12` */
  readonly place: string
}

export interface ReadingContext {
  /** For objects that name none. */
  readonly defaultNamespace: string
  /** The version of the file's objects: see versionOf(). */
  readonly version: string
  readonly log: Log
}

/** Lists within lists: kubectl makes none, and a file must not decide how deep we go. */
const maximumNesting = 4

/**
 * The Secrets and ConfigMaps of one document, which may be a List. Objects of other kinds are passed over.
 * @throws FileError
 * @internal
 */
export function readObjects(document: ParsedDocument, context: ReadingContext): FileObject[] {
  return valueIn(document.value, document.place, context, {
    nesting: 0,
    itemPlace: document.itemPlace,
  })
}

interface InList {
  readonly nesting: number
  readonly itemPlace: (index: number) => string
  /** The kind of the items of a SecretList or a ConfigMapList, for items that do not name theirs. */
  readonly kind?: ObjectKind
}

function valueIn(value: unknown, place: string, context: ReadingContext, position: InList): FileObject[] {
  try {
    const body = record(value, 'the document')
    const { kind, version } = kindOfValue(body, position.kind)
    if (version === 'v1') {
      if (kind === 'Secret' || kind === 'ConfigMap') return [{ ...readFileObject(kind, body, context), place }]
      if (kind === 'List') return readList(body, place, context, position)
      if (kind === 'SecretList') return readList(body, place, context, { ...position, kind: 'Secret' })
      if (kind === 'ConfigMapList') return readList(body, place, context, { ...position, kind: 'ConfigMap' })
    }
    context.log.debug({ place, kind, apiVersion: version }, 'not a Secret or a ConfigMap: ignored')
    return []
  } catch (error) {
    if (error instanceof InvalidObjectError) throw new FileError(`${place}: ${error.message}`)
    throw error
  }
}

/** Reads kind and apiVersion as Kubernetes does: an empty word counts as missing, and then the list of the object tells. */
function kindOfValue(body: Readonly<Record<string, unknown>>, listed: ObjectKind | undefined) {
  const kind = body.kind === '' ? undefined : body.kind
  const version = body.apiVersion === '' ? undefined : body.apiVersion
  // kubectl goes by the item, and the API's own types go by the list.
  if (listed && ((kind ?? listed) !== listed || (version ?? 'v1') !== 'v1')) {
    throw new InvalidObjectError(`kind and apiVersion in a ${listed}List must be ${listed} and v1, or missing`)
  }
  if (listed) return { kind: listed, version: 'v1' }
  if (typeof kind === 'string' && typeof version === 'string') return { kind, version }
  throw new InvalidObjectError('apiVersion and kind are required, as strings')
}

function readList(
  body: Readonly<Record<string, unknown>>,
  place: string,
  context: ReadingContext,
  position: InList,
): FileObject[] {
  if (position.nesting >= maximumNesting) throw new InvalidObjectError('lists are nested too deeply')
  const items = body.items ?? []
  if (!Array.isArray(items)) throw new InvalidObjectError('items must be a list')
  return items.flatMap((item: unknown, index) => {
    const at = position.itemPlace(index)
    const inner = { ...position, nesting: position.nesting + 1, itemPlace: () => at }
    return valueIn(item, at === place ? `${place}: items[${index}]` : at, context, inner)
  })
}

function readFileObject(
  kind: ObjectKind,
  body: Readonly<Record<string, unknown>>,
  { defaultNamespace, version }: ReadingContext,
): Omit<FileObject, 'place'> {
  const metadata = record(body.metadata, 'metadata')
  const name = objectNameIn(metadata.name, 'metadata.name')
  const namespace = objectNameIn(metadata.namespace ?? defaultNamespace, 'metadata.namespace')
  try {
    refuseUnknownField(kind, body)
    const data = decodeData(kind, body)
    if (kind === 'Secret') addStringData(data, body.stringData)
    const object = {
      reference: { kind, namespace, name },
      uid: typeof metadata.uid === 'string' && isIdentifier(metadata.uid, longestName) ? metadata.uid : '',
      resourceVersion: version,
      data,
      terminating: metadata.deletionTimestamp !== undefined && metadata.deletionTimestamp !== null,
    }
    return { object, labels: readLabels(metadata.labels) }
  } catch (error) {
    if (!(error instanceof InvalidObjectError)) throw error
    throw new InvalidObjectError(`${objectName({ kind, namespace, name })}: ${error.message}`)
  }
}

/** As strings, some of which must be quoted in YAML: a label that the API refuses would never match. */
function readLabels(value: unknown): Labels {
  const labels = Object.create(null) as Record<string, string>
  for (const [key, label] of Object.entries(record(value ?? {}, 'metadata.labels'))) {
    // The API server, too, reads null as empty.
    const text = label ?? ''
    if (typeof text !== 'string') throw new InvalidObjectError(`the label ${quote(key)} must be a string: quote it`)
    labels[key] = text
  }
  return labels
}

/** A DNS subdomain: what the API server demands of the name of a Secret or a ConfigMap (RFC 1123). */
function objectNameIn(value: unknown, field: string): string {
  if (typeof value !== 'string') throw new InvalidObjectError(`${field} must be a string`)
  if (!isObjectName(value)) {
    throw new InvalidObjectError(`${field} ${quote(value)} is not a name that Kubernetes allows`)
  }
  return value
}

const knownFields: Readonly<Record<ObjectKind, readonly string[]>> = {
  Secret: ['apiVersion', 'kind', 'metadata', 'data', 'stringData', 'type', 'immutable'],
  ConfigMap: ['apiVersion', 'kind', 'metadata', 'data', 'binaryData', 'immutable'],
}

/** A misspelt `data` would be an object without data, and would empty the published directory. */
function refuseUnknownField(kind: ObjectKind, body: Readonly<Record<string, unknown>>): void {
  const unknown = Object.keys(body).find((name) => !knownFields[kind].includes(name))
  if (unknown === undefined) return
  throw new InvalidObjectError(`unknown field ${quote(unknown)}: known are ${knownFields[kind].join(', ')}`)
}

/**
 * The objects of one file.
 * @returns undefined if the file is not, or no longer, in the state of the stamp: it is being written
 * @throws FileError
 */
export async function readObjectFile(
  directory: string,
  name: string,
  stamp: Stamp,
  context: Omit<ReadingContext, 'version'>,
): Promise<FileObject[] | undefined> {
  if (stamp.size > maximumFileSize) {
    throw new FileError(`${name}: holds ${stamp.size} bytes; at most ${maximumFileSize} are allowed`)
  }
  const bytes = await readStamped(join(directory, name), stamp).catch((error: unknown) => {
    throw fileError(name, error)
  })
  if (bytes === undefined) return undefined
  const text = decodeYaml(bytes)
  if (text === undefined) throw new FileError(`${name}: ${notText}`)
  // A file that a power cut has left, or that is about to be written.
  if (text.trim() === '') throw new FileError(`${name}: it is empty`)
  const documents = await parseDocuments(name, text)
  const version = stampVersion(name, stamp)
  return documents.flatMap((document) => readObjects(document, { ...context, version }))
}

async function readStamped(path: string, stamp: Stamp): Promise<Buffer | undefined> {
  // A pipe of that name would block without it.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const matches = async () => stampFrom(await file.stat({ bigint: true })).id === stamp.id
    if (!(await matches())) return undefined
    const bytes = Buffer.alloc(stamp.size)
    let length = 0
    while (length < bytes.length) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length, length)
      if (bytesRead === 0) return undefined
      length += bytesRead
    }
    return (await matches()) ? bytes : undefined
  } finally {
    await file.close()
  }
}

interface ParsedDocument {
  readonly value: unknown
  /** `certs.yaml:12`: where it starts. */
  readonly place: string
  /** Where the item of this index starts, for a document that is a List. */
  readonly itemPlace: (index: number) => string
}

/**
 * The documents of a YAML or JSON file that hold anything.
 * @throws FileError with file, line and kind of error
 * @internal
 */
export async function parseDocuments(name: string, text: string): Promise<ParsedDocument[]> {
  // A byte order mark is no part of JSON.
  const bare = text.replace(/^\ufeff/, '')
  try {
    return name.endsWith('.json') ? jsonDocument(name, bare) : await parseYaml(name, bare)
  } catch (error) {
    if (error instanceof RangeError) throw new FileError(`${name}: it is nested too deeply`)
    if (!(error instanceof YamlError)) throw error
    throw new FileError(`${placeAt(name, error.position)}: ${error.problem}`)
  }
}

function placeAt(name: string, position: Position | undefined): string {
  return position === undefined ? name : `${name}:${position.line}`
}

function jsonDocument(name: string, text: string): ParsedDocument[] {
  if (text.trim() === '') return []
  return [{ value: readJson(text), place: `${name}:1`, itemPlace: (index) => `${name}: items[${index}]` }]
}

async function parseYaml(name: string, text: string): Promise<ParsedDocument[]> {
  const documents = await readDocuments(text)
  const found = emptyEnd.exec(text)
  if (found) {
    const line = text.slice(0, found.index + found[0].length).split('\n').length
    throw new YamlError('... ends a document that holds nothing: remove it', { line, column: 1 })
  }
  return documents
    .filter(({ value }) => value !== null)
    .map(({ value, position, positionAt }) => ({
      value,
      place: placeAt(name, position),
      itemPlace: (index) => placeAt(name, positionAt(['items', index])),
    }))
}
