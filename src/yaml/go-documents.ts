/*
 * The documents of a YAML text as Kubernetes' own readers take them: the YAML library of kubectl, kubelet and client-go (go-values.ts and
 * go-scanner.ts), with the places of their values.
 */
import { resolvePlain } from './go-scalars.js'
import { readContents, type ReadContents } from './go-values.js'
import { refuseCharacters, refusePlaces } from './go-scanner.js'
import { parseText, YamlError, type ParsedText, type Position } from './parse.js'

export type Path = readonly (string | number)[]

type Document = ParsedText['documents'][number]

export interface KubernetesDocument {
  /** Maps, lists, texts, numbers (ExactNumber where JavaScript would change one), booleans, null. */
  readonly value: unknown
  /** Where it starts. */
  readonly position: Position
  /** Where the value at a path starts, or its holder: an alias, say. */
  readonly positionAt: (path: Path) => Position
}

/** @throws YamlError with the position, for a field that stands twice, too; RangeError for a text that nests too deeply */
export async function readDocuments(text: string): Promise<KubernetesDocument[]> {
  refuseCharacters(text)
  const parsed = await parseText(text, 'manifest')
  // Of JSON, the library reads all that others read, tabs included.
  const isPlain = isJson(text)
  return parsed.documents.map((document) => {
    const { value, repeated } = readGoDocument(document, parsed, isPlain)
    if (repeated) throw new YamlError('a field stands twice in one map: remove one of them', repeated)
    const position = parsed.positionOf(document.contents?.range[0] ?? document.range[0])
    return { value, position, positionAt: (path) => parsed.positionOf(offsetAt(parsed.yaml, document, path)) }
  })
}

/** `isPlain`: no place of it has another meaning for that library. @throws YamlError, RangeError */
export function readGoDocument(document: Document, parsed: ParsedText, isPlain = false): ReadContents {
  // go-values.ts knows the escapes.
  const error = document.errors.find(({ code }) => code !== 'BAD_DQ_ESCAPE')
  if (error) throw new YamlError(`not valid YAML (${error.code})`, parsed.positionOf(error.pos[0]))
  if (!isPlain) refusePlaces(document, parsed)
  return readContents(document.contents, parsed, isPlain ? { plain: resolvePlain, repeats: 'last' } : undefined)
}

function isJson(text: string): boolean {
  if (!/^[ \r\n]*\{/.test(text)) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

export function offsetAt(yaml: ParsedText['yaml'], document: Document | undefined, path: Path): number {
  for (let length = path.length; length > 0; length--) {
    const node = document?.getIn(path.slice(0, length), true)
    if (yaml.isNode(node) && node.range) return node.range[0]
  }
  return document?.contents?.range[0] ?? 0
}
