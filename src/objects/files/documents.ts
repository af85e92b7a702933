/** From the text of a file to its documents, with places for messages. */
import { readDocuments } from '../../yaml/go-documents.js'
import { readJson } from '../../yaml/read.js'
import { YamlError, type Position } from '../../yaml/parse.js'
import { FileError } from './error.js'

export interface ParsedDocument {
  readonly value: unknown
  /** `certs.yaml:12`: where it starts. */
  readonly place: string
  /** Where the item of this index starts, for a document that is a List. */
  readonly itemPlace: (index: number) => string
}

/** kubectl splits a text at `---` first, and then refuses a part that begins with `...`. */
const emptyEnd = /^(?:(?<![^])|---[ \t]*(?:#.*)?\r?\n)(?:[ \t]*(?:#.*)?\r?\n)*\.\.\.(?=\s|$)/m

/**
 * The documents of a YAML or JSON file that hold anything.
 * @throws FileError with file, line and kind of error
 */
export async function parseDocuments(name: string, text: string): Promise<ParsedDocument[]> {
  // A byte order mark is no part of JSON.
  const bare = text.replace(/^\ufeff/, '')
  try {
    return name.endsWith('.json') ? parseJson(name, bare) : await parseYaml(name, bare)
  } catch (error) {
    if (error instanceof RangeError) throw new FileError(`${name}: it is nested too deeply`)
    if (!(error instanceof YamlError)) throw error
    throw new FileError(`${placeAt(name, error.position)}: ${error.problem}`)
  }
}

function placeAt(name: string, position: Position | undefined): string {
  return position === undefined ? name : `${name}:${position.line}`
}

function parseJson(name: string, text: string): ParsedDocument[] {
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
