/**
 * From JSON, as the API and files have it, to bytes by key. The decoder checks everything; an error names the key
 * name and never with its value.
 */
import { contentPassed } from '../../content-garbage.js'
import { isDataKey, isIdentifier, longestName, longestVersion, mostMembers } from '../../kubernetes-names.js'
import { quote } from '../../message-text.js'
import type { KubernetesObject, ObjectKind, ObjectReference } from '../../objects/types.js'

/** The object cannot be used as it is. The message names the field and holds no value. */
export class InvalidObjectError extends Error {
  override readonly name = 'InvalidObjectError'
}

/** All values of one object together, in bytes (Kubernetes: pkg/apis/core/types.go, MaxSecretSize). */
const maximumDataSize = 1024 * 1024

type Data = Map<string, Uint8Array>

/**
 * One object of the API. The result keeps nothing of the JSON.
 * @throws InvalidObjectError
 */
export function decodeObject(reference: ObjectReference, json: unknown): KubernetesObject {
  const body = record(json, 'the object')
  const metadata = record(body.metadata, 'metadata')
  return {
    reference,
    uid: identifier(metadata.uid, 'metadata.uid', longestName),
    resourceVersion: identifier(metadata.resourceVersion, 'metadata.resourceVersion', longestVersion),
    terminating: typeof metadata.deletionTimestamp === 'string',
    data: decodeData(reference.kind, body),
  }
}

/**
 * The bytes of a Secret's `data`, or of a ConfigMap's `data` and `binaryData`. Absent or null is empty.
 * @throws InvalidObjectError
 */
export function decodeData(kind: ObjectKind, body: Readonly<Record<string, unknown>>): Data {
  const data: Data = new Map()
  if (kind === 'Secret') {
    addAll(data, 'data', body.data, fromBase64)
  } else {
    addAll(data, 'data', body.data, fromText)
    const binary: Data = new Map()
    addAll(binary, 'binaryData', body.binaryData, fromBase64)
    for (const [key, bytes] of binary) {
      if (data.has(key)) throw new InvalidObjectError(`key ${quote(key)} is in both data and binaryData`)
      data.set(key, bytes)
    }
  }
  checkSize(data)
  return data
}

/** Adds `stringData`, as only files have it: the API server would have put it into `data`, where it wins. */
export function addStringData(data: Data, stringData: unknown): void {
  addAll(data, 'stringData', stringData, fromText)
  checkSize(data)
}

/** @throws InvalidObjectError if it is not a JSON object */
export function record(value: unknown, field: string): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Readonly<Record<string, unknown>>
  }
  throw new InvalidObjectError(`${field} must be a map, not ${describeJson(value)}`)
}

function addAll(data: Data, field: string, map: unknown, decode: (value: string) => Uint8Array | undefined) {
  if (map === undefined || map === null) return
  // What a server sends with more members than that has come as their number: parseBounded().
  const members = typeof map === 'number' ? map : Object.keys(record(map, field)).length
  if (members > mostMembers) {
    throw new InvalidObjectError(`${field} has ${members} keys; holdfast reads at most ${mostMembers}`)
  }
  for (const [key, value] of Object.entries(record(map, field))) {
    checkKey(key, field)
    // The API server, too, reads null as empty.
    const text = value ?? ''
    if (typeof text !== 'string') {
      throw new InvalidObjectError(`${field}[${quote(key)}] must be a string, not ${describeJson(value)}`)
    }
    const bytes = decode(text)
    if (bytes === undefined) throw new InvalidObjectError(`${field}[${quote(key)}] is not valid base64`)
    data.set(key, bytes)
  }
}

function checkKey(key: string, field: string): void {
  if (key.length > longestName) {
    throw new InvalidObjectError(`${field} has a key of ${key.length} characters; at most ${longestName} are allowed`)
  }
  if (!isDataKey(key)) {
    throw new InvalidObjectError(
      `${field} has the key ${quote(key)}: keys are letters, digits, '-', '_' and '.', and do not start with '..'`,
    )
  }
}

function checkSize(data: Data): void {
  let size = 0
  for (const bytes of data.values()) size += bytes.length
  contentPassed(size)
  if (size > maximumDataSize) {
    throw new InvalidObjectError(`it holds ${size} bytes; Kubernetes allows at most ${maximumDataSize}`)
  }
}

/** As Go's encoding/base64 reads it: line breaks are skipped, padding is required, nothing else is forgiven. */
function fromBase64(text: string): Uint8Array | undefined {
  const joined = /[\r\n]/.test(text) ? text.replace(/[\r\n]/g, '') : text
  if (joined.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(joined)) return undefined
  return unpooled(joined, 'base64')
}

function fromText(text: string): Uint8Array {
  return unpooled(text, 'utf8')
}

/** An empty value costs a key of its own and no more. */
const nothing = new Uint8Array()

/** Allocates outside Node's buffer pool: a small key must not keep a slab of it alive. */
function unpooled(text: string, encoding: 'base64' | 'utf8'): Uint8Array {
  if (text === '') return nothing
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text, encoding))
  bytes.write(text, encoding)
  return bytes
}

/** Versions and uids stand in records, logs and status as the server gives them. */
function identifier(value: unknown, field: string, longest: number): string {
  if (typeof value !== 'string' || value === '') {
    throw new InvalidObjectError(`${field} must be a string that is not empty`)
  }
  if (isIdentifier(value, longest)) return value
  throw new InvalidObjectError(
    `${field} must be at most ${longest} letters, digits and '-._:~', the first a letter or digit`,
  )
}

function describeJson(value: unknown): string {
  if (value === undefined) return 'missing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'a map' : `a ${typeof value}`
}
