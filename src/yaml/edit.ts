/** Changes or removes one value of a YAML or JSON text, and leaves everything else as its author wrote it. */
import type * as Yaml from 'yaml'
import { type Dialect, parseText } from './parse.js'

/** A piece of text in the place of another. */
interface Edit {
  readonly from: number
  readonly to: number
  readonly text: string
}

/**
 * The text with `value` at a path of mappings in its first document; the last of them may be missing. A `value` that is undefined removes
 * the field. The answer is undefined where the text is written in a way that this cannot change, such as an alias. The caller reads the
 * result again: only its own reader knows what a text means.
 */
export async function withTextAt(
  text: string,
  path: readonly string[],
  value: string | undefined,
  dialect: Dialect,
): Promise<string | undefined> {
  const { yaml, documents } = await parseText(text, dialect)
  let map: unknown = documents[0]?.contents
  for (const step of path.slice(0, -2)) map = yaml.isMap(map) ? pairOf(yaml, map, step)?.value : undefined
  if (!yaml.isMap(map)) return undefined
  const [name = '', key = ''] = path.slice(-2)
  const inner = pairOf(yaml, map, name)?.value
  const edit =
    value !== undefined
      ? editIn(yaml, text, map, name, key, value)
      : yaml.isMap(inner)
        ? removal(yaml, text, inner, key)
        : undefined
  return edit && text.slice(0, edit.from) + edit.text + text.slice(edit.to)
}

function editIn(yaml: typeof Yaml, text: string, map: Yaml.YAMLMap, name: string, key: string, value: string) {
  const inner = pairOf(yaml, map, name)
  const pair = `${JSON.stringify(key)}: ${JSON.stringify(value)}`
  if (inner === undefined) return insertion(yaml, text, map, `${JSON.stringify(name)}: {${pair}}`)
  if (!yaml.isMap(inner.value)) return replacement(yaml, inner, `{${pair}}`)
  const known = pairOf(yaml, inner.value, key)
  return known === undefined
    ? insertion(yaml, text, inner.value, pair)
    : replacement(yaml, known, JSON.stringify(value))
}

/** Of a field that stands twice, the last counts. */
function pairOf(yaml: typeof Yaml, map: Yaml.YAMLMap, key: string): Yaml.Pair | undefined {
  return map.items.findLast((pair) => yaml.isScalar(pair.key) && pair.key.value === key)
}

/** A value that is missing has no text at all: then a space sets the new one apart from its colon. */
function replacement(yaml: typeof Yaml, { value }: Yaml.Pair, text: string): Edit | undefined {
  if (!yaml.isScalar(value) || !value.range) return undefined
  const [from, to] = value.range
  return { from, to, text: from === to ? ` ${text}` : text }
}

/** Before the first of a mapping's pairs, so that what comments stand above them stays above them. */
function insertion(yaml: typeof Yaml, text: string, map: Yaml.YAMLMap, pair: string): Edit | undefined {
  const [first] = map.items
  if (map.flow === true) {
    const at = (map.range?.[0] ?? 0) + 1
    return { from: at, to: at, text: first === undefined ? pair : `${pair}, ` }
  }
  if (!yaml.isScalar(first?.key) || !first.key.range) return undefined
  const [at] = first.key.range
  const column = at - (text.lastIndexOf('\n', at - 1) + 1)
  return { from: at, to: at, text: `${pair}\n${' '.repeat(column)}` }
}

/** Removes a pair with the comment behind it; in a mapping of one pair, brackets must close it. */
function removal(yaml: typeof Yaml, text: string, map: Yaml.YAMLMap, name: string): Edit | undefined {
  const ranges = map.items.map(({ key, value }) => ({
    key: (yaml.isNode(key) ? key.range : undefined) ?? undefined,
    value: (yaml.isNode(value) ? value.range : undefined) ?? undefined,
  }))
  const index = map.items.findLastIndex(({ key }) => yaml.isScalar(key) && key.value === name)
  const [before, own, next] = [ranges[index - 1], ranges[index], ranges[index + 1]]
  if (!own?.key || !own.value) return undefined
  const [from] = own.key
  const line = text.lastIndexOf('\n', from - 1) + 1
  if (map.flow === true) {
    if (next?.key) return { from, to: next.key[0], text: '' }
    return { from: before?.value ? before.value[1] : from, to: own.value[1], text: '' }
  }
  if (ranges.length === 1) return undefined
  const isLine = text.slice(line, from).trim() === ''
  if (isLine) return { from: line, to: own.value[2], text: '' }
  return next?.key && { from, to: next.key[0], text: '' }
}
