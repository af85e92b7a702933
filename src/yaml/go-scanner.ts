/*
 * Places that the YAML library of Kubernetes reads in another way than the parser here, which follows YAML 1.2: tabs, line breaks, and
 * unquoted text inside of brackets (go.yaml.in/yaml/v2 v2.4.3, scannerc.go). holdfast refuses such a text, since its author means another.
 */
import type * as Yaml from 'yaml'
import { YamlError, type ParsedText, type Position } from './parse.js'

/** The library refuses them wherever they stand (readerc.go). */
const refusedCharacter = /[^\t\n\r -~\u0085\u00a0-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u

/** YAML 1.1 ends a line at each of these. */
const otherBreak = /\r(?!\n)|[\u0085\u2028\u2029]/

/** The library drops it at the start of a line, and keeps it elsewhere. */
const laterMark = /(?<=[^])\ufeff/

/** Before its first character in a line, and behind `- `, `? ` and `: ` there, the library takes no tab for a space. */
const tab = /^ *\t|^ *(?:[-?:] *)+\t/gm

/** At the beginning of the text, where alone a manifest can have one: the library takes `%YAML 1.1` and no other version. */
const directive = /^(?:\ufeff?[ \t]*(?:#.*)?\n)*\ufeff?%/

/** The characters that the library takes for the name of an anchor. */
const anchorName = /^[-\w]+$/

/** The characters that the library takes for a tag (yaml_parser_scan_tag_uri). */
const tagCharacters = /^[-\w;/?:@&=+$,.!~*'()[\]%]*$/

/** Inside of brackets, the library ends unquoted text there, or reads a colon as the end of a name. */
const splitText = /[?[\]{},]|^:|:$|\s:/

/** What may stand between a key and its colon. */
const beforeColon = /(?:\s|#.*)*:/y

/** The characters of a field's name that the library searches for its colon. */
const longestName = 1_024

/** @throws YamlError for a character in any context, and for a directive */
export function refuseCharacters(text: string): void {
  const refusals = [
    [refusedCharacter, 'not valid YAML (a control character)'],
    [otherBreak, 'a character that ends a line to Kubernetes alone: remove it'],
    [laterMark, 'a byte order mark inside of the text: remove it'],
  ] as const
  for (const [pattern, problem] of refusals) {
    const found = pattern.exec(text)
    if (found) throw new YamlError(problem, positionIn(text, found.index))
  }
  const first = directive.exec(text)
  if (first) throw new YamlError('a directive (%): remove it', positionIn(text, first[0].length - 1))
}

/** @throws YamlError for the first place in the document that the library would read in another way */
export function refusePlaces(document: Yaml.Document.Parsed, { text, yaml, documents, positionOf }: ParsedText): void {
  const scalars: Yaml.Scalar[] = []
  const refuse = (offset: number, problem: string): never => {
    throw new YamlError(problem, positionOf(offset))
  }
  yaml.visit(document, {
    Node: (key, node, path) => {
      const [from = 0, to = 0] = node.range ?? []
      const name = yaml.isAlias(node) ? node.source : node.anchor
      if (name !== undefined && !anchorName.test(name)) refuse(from, 'an anchor whose name is no word')
      if (!yaml.isAlias(node) && !tagCharacters.test(node.tag ?? ''))
        refuse(from, 'a tag with a character that Kubernetes refuses')
      if (!yaml.isScalar(node)) return
      if (key === 'key' && to - from >= longestName) refuse(from, 'a field whose name is too long')
      if (node.type !== 'PLAIN') scalars.push(node)
      else if (path.some((outer) => yaml.isCollection(outer) && outer.flow === true)) {
        const isWhole = !splitText.test(text.slice(from, to)) && !(key === 'key' && /^:\S/.test(text.slice(to, to + 2)))
        if (!isWhole) refuse(from, 'unquoted text inside of brackets that Kubernetes may split: quote it')
      }
    },
  })
  yaml.visit(document, {
    Pair: (_, pair, path) => {
      const outer = path.at(-1)
      if (!yaml.isCollection(outer) || outer.flow !== true) return
      const [from, colon] = keyIn(text, pair as Yaml.Pair<Yaml.Node | null>) ?? [0, 0]
      const name = text.slice(from, colon)
      if (name.includes('\n') || name.length > longestName)
        refuse(from, 'a field whose colon is on another line, or far away, in brackets: put it behind the name')
    },
  })
  const [own, , end] = document.range
  const start = documents[0] === document ? 0 : own
  const indentations = new Map<Yaml.Scalar, number>()
  let at = 0
  for (const { index, 0: found } of text.matchAll(tab)) {
    const offset = index + found.length - 1
    if (offset < start) continue
    if (offset >= end) break
    while ((scalars[at]?.range?.[1] ?? Infinity) <= offset) at += 1
    const around = scalars[at]
    const isIn = around !== undefined && (around.range?.[0] ?? Infinity) < offset
    if (isIn && (around.type === 'QUOTE_DOUBLE' || around.type === 'QUOTE_SINGLE')) continue
    const least = around && (indentations.get(around) ?? indentationOf(around, text))
    if (around && least !== undefined) indentations.set(around, least)
    const isContent = isIn && index > (around.range?.[0] ?? 0) && found.search(/[^ ]/) >= (least ?? 0)
    if (!isContent) refuse(offset, 'not valid YAML (a tab)')
  }
}

/** Where a key without a question mark begins, its anchor and its tag included, and where its colon is. undefined: it is empty, or has none. */
function keyIn(text: string, { key, srcToken }: Yaml.Pair<Yaml.Node | null>): [number, number] | undefined {
  const start = srcToken?.start ?? []
  if (!key?.range || key.range[0] === key.range[1]) return undefined
  if (start.some(({ type }) => type === 'explicit-key-ind')) return undefined
  const from = start.find(({ type }) => type === 'anchor' || type === 'tag')?.offset ?? key.range[0]
  beforeColon.lastIndex = key.range[1]
  return beforeColon.test(text) ? [from, beforeColon.lastIndex - 1] : undefined
}

/** Spaces before the text of a block: a tab behind them belongs to the text, unless the first line has to tell how many they are. */
function indentationOf({ range }: Yaml.Scalar, text: string): number {
  const [header = '', ...lines] = text.slice(range?.[0], range?.[1]).split('\n')
  const first = lines.find((line) => line.trim() !== '') ?? ''
  return /^ *\t/.test(first) && !/^[|>]\S*\d/.test(header) ? Infinity : first.search(/[^ ]/)
}

function positionIn(text: string, offset: number): Position {
  const lines = text.slice(0, offset).split('\n')
  return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 }
}
