/** From the text of a YAML or JSON file to plain values. */
import type * as Yaml from 'yaml'
import { parseText, YamlError, type ParsedText, type Position, type Dialect } from './parse.js'

/**
 * The value of each document of a text: maps, lists, texts, numbers, booleans; nothing in it contains itself. null: the document is empty.
 * @throws YamlError with the position and the kind of the first error
 */
export async function readYaml(text: string, dialect: Dialect): Promise<unknown[]> {
  const parsed = await parseText(text, dialect)
  const errors = parsed.documents.flatMap((document) => [
    ...document.errors.map(({ code, pos }) => ({ code, offset: pos[0] })),
    ...repeatedKeys(document, parsed),
  ])
  const [error] = errors.sort((a, b) => a.offset - b.offset)
  if (error) throw new YamlError(`not valid YAML (${error.code})`, parsed.positionOf(error.offset))
  // Without an anchor, nothing can contain itself.
  const mayRepeat = text.includes('&')
  return parsed.documents.map((document) => {
    const position = parsed.positionOf(document.contents?.range[0] ?? document.range[0])
    return valueOf(document, position, mayRepeat)
  })
}

/** Maps as keys of maps that are keys themselves. The parser writes such a key as text, level by level: 300 of them took it 3.5 s. */
const deepestKeys = 10

/** The first key that stands twice in a map. The parser compares each key with all before it: 40,000 took it six seconds. */
function repeatedKeys(
  document: ParsedText['documents'][number],
  { yaml }: ParsedText,
): { code: string; offset: number }[] {
  let found: number | undefined
  const lookAt = (
    _: unknown,
    map: Yaml.YAMLMap,
    path: readonly (Yaml.Document | Yaml.Node | Yaml.Pair)[],
  ): symbol | undefined => {
    const { items } = map
    const isKey = (outer: unknown, index: number): boolean =>
      yaml.isPair(outer) && outer.key === (path[index + 1] ?? map)
    if (path.filter(isKey).length > deepestKeys) throw new YamlError('it is nested too deeply')
    const known = new Set<unknown>()
    for (const { key } of items) {
      if (!yaml.isScalar(key)) continue
      if (known.has(key.value)) found = Math.min(found ?? Infinity, key.range?.[0] ?? 0)
      known.add(key.value)
    }
    return undefined
  }
  try {
    yaml.visit(document, { Map: lookAt })
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new YamlError('it is nested too deeply')
  }
  return found === undefined ? [] : [{ code: 'DUPLICATE_KEY', offset: found }]
}

/** @throws YamlError with the line, where the parser gives it */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    const offset = /position (\d+)/.exec((error as Error).message)?.[1]
    // Without a position, the text has ended too early.
    const before = text.slice(0, offset === undefined ? text.length : Number(offset)).trimEnd()
    const lines = before.split('\n')
    throw new YamlError('not valid JSON', { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 })
  }
}

function valueOf(document: ParsedText['documents'][number], position: Position, mayRepeat: boolean): unknown {
  let value: unknown
  try {
    // A text that multiplies itself by aliases is refused: the parser's limit is 100 for each node.
    value = document.toJS()
  } catch (error) {
    if (error instanceof RangeError) throw new YamlError('it is nested too deeply', position)
    throw new YamlError('not valid YAML (an unknown alias, or too many aliases)', position)
  }
  if (!mayRepeat) return value
  try {
    JSON.stringify(value)
    return value
  } catch {
    throw new YamlError('it has an alias inside the value that the alias stands for', position)
  }
}
