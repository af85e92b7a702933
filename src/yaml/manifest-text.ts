/** The text of a static pod's manifest as kubelet's file source reads it (kubernetes: pkg/kubelet/config/common.go, tryDecodeSinglePod). */
import type * as Yaml from 'yaml'
import { hasExactNumbers, numberFrom } from './exact-number.js'
import type { PlainValue } from './go-scalars.js'
import { offsetAt, readGoDocument, type Path } from './go-documents.js'
import { refuseCharacters } from './go-scanner.js'
import { readContents } from './go-values.js'
import { parseText, YamlError, type Position } from './parse.js'
import { readJson } from './read.js'

export interface ManifestText {
  /** Maps, lists, texts, numbers (ExactNumber where JavaScript would change one), booleans, null. */
  readonly value: unknown
  /** Documents that hold anything; kubelet reads only the first. */
  readonly documents: number
  /** Where a field stands that stood before in the same map: the last one counts, and in JSON a second map adds to the first. */
  readonly repeated: Position | undefined
  /** Where the value at a path starts, or its holder: an alias, say. */
  readonly positionAt: (path: Path) => Promise<Position>
}

export type { Path }

/** The spaces that Go accepts before JSON (unicode.IsSpace): a byte order mark is none, and makes YAML of it. */
const startsAsJson = /^[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*\{/

/**
 * kubelet takes what starts with `{` for JSON and for nothing else. Of YAML it reads the first document, even an empty one.
 * @throws YamlError with the position; RangeError for a text that nests too deeply
 */
export async function readManifestText(text: string): Promise<ManifestText> {
  return startsAsJson.test(text) ? readAsJson(text) : readAsYaml(text)
}

async function readAsJson(text: string): Promise<ManifestText> {
  const value = withJsonOnly(() => readJson(text))
  // A value that nests too deeply to be written again fails here, and not halfway through an installation.
  JSON.stringify(value)
  const parsed = () => parseText(text, 'manifest')
  const positionAt = async (path: Path): Promise<Position> => {
    const { documents, yaml, positionOf } = await parsed()
    return positionOf(offsetAt(yaml, documents[0], path))
  }
  if (!hasExactNumbers(text) && fieldsIn(text) === fieldsOf(value)) {
    return { value, documents: 1, repeated: undefined, positionAt }
  }
  const exact = await parsed()
  const read = readContents(exact.documents[0]?.contents ?? null, exact, { plain: jsonWord, repeats: 'merged' })
  return { ...read, documents: 1, positionAt }
}

/** How many fields the text of JSON has, of which JSON.parse keeps the last of each name. */
function fieldsIn(json: string): number {
  return [...json.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?/g)].filter(([, colon]) => colon !== undefined).length
}

function fieldsOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const inner: readonly unknown[] = Object.values(value)
  return inner.reduce<number>((sum, item) => sum + fieldsOf(item), Array.isArray(value) ? 0 : inner.length)
}

/** A flow mapping of YAML starts so, too. */
function withJsonOnly<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof YamlError)) throw error
    throw new YamlError(`${error.problem}, as which kubelet reads a text that starts with {`, error.position)
  }
}

async function readAsYaml(text: string): Promise<ManifestText> {
  refuseCharacters(text)
  const parsed = await parseText(text, 'manifest')
  const { documents, yaml, positionOf } = parsed
  const [first, ...others] = documents
  const { value, repeated } = first ? readGoDocument(first, parsed) : { value: null, repeated: undefined }
  const filled = others.filter(({ contents, errors }) => errors.length > 0 || !isEmpty(yaml, contents))
  if (value === null && filled.length > 0) {
    throw new YamlError('its first YAML document is empty, and kubelet reads no other', { line: 1, column: 1 })
  }
  return {
    value,
    documents: (value === null ? 0 : 1) + filled.length,
    repeated,
    positionAt: (path) => Promise.resolve(positionOf(offsetAt(yaml, first, path))),
  }
}

function jsonWord(word: string): PlainValue {
  return word === 'null' ? null : word === 'true' || (word === 'false' ? false : numberFrom(word))
}

function isEmpty(yaml: typeof Yaml, contents: Yaml.ParsedNode | null): boolean {
  return contents === null || (yaml.isScalar(contents) && contents.source === '' && contents.type === 'PLAIN')
}
