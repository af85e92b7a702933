/**
 * A YAML or JSON text as a tree of plain values that know their line and column. What a configuration needs nothing of is
 * refused here: several documents, tags, merge keys, other YAML versions, and aliases that multiply without end.
 */
import type * as Yaml from 'yaml'
import { quote } from '../message-text.js'
import { parseText, YamlError, type ParsedText, type Position } from './parse.js'

/** Characters. A configuration of a thousand directories has some 300 000. */
const maximumLength = 1024 * 1024
/** Nodes after the expansion of aliases: a few lines of aliases to aliases could otherwise stand for billions. */
const maximumNodes = 200_000

export type TreeNode = TreeMapping | TreeList | TreeScalar

interface Sized extends Position {
  /** How many nodes it stands for, itself included. */
  readonly size: number
}

interface TreeMapping extends Sized {
  readonly kind: 'mapping'
  readonly entries: ReadonlyMap<string, MapEntry>
}

interface MapEntry {
  readonly name: Position
  readonly value: TreeNode
}

interface TreeList extends Sized {
  readonly kind: 'list'
  readonly items: readonly TreeNode[]
}

interface TreeScalar extends Sized {
  readonly kind: 'scalar'
  readonly value: string | number | boolean | null
  /** As it was written, without quotes: `0755` for the number 755. */
  readonly source: string
}

const templateAdvice = 'if this is a template ({{ }}), render the file first'

/** Collects the problems of a text, each with its place. */
export interface ProblemSink {
  add(at: Position, place: string, message: string, suggestion?: string): void
}

/** Undefined for an unreadable text; the problems then say why. */
export async function parseTree(text: string, problems: ProblemSink): Promise<TreeNode | undefined> {
  const start = { line: 1, column: 1 }
  if (text.length > maximumLength) {
    problems.add(start, '', `holds ${text.length} characters: at most ${maximumLength} are read`)
    return undefined
  }
  try {
    const parsed = await parseText(text, 'configuration')
    if (parsed.documents.length > 0) return new TreeReader(parsed, problems).read(parsed.documents)
    problems.add(start, '', 'is empty', 'it must hold an AgentConfiguration')
  } catch (error) {
    if (!(error instanceof YamlError)) throw error
    problems.add(start, '', 'is nested too deeply to be read')
  }
  return undefined
}

class TreeReader {
  readonly #yaml: typeof Yaml
  readonly #text: string
  readonly #position: (offset: number) => Position
  readonly #problems: ProblemSink
  readonly #anchors = new Map<string, TreeNode>()
  readonly #open = new Set<string>()
  /** Problems that leave the tree without a value. */
  #failures = 0

  constructor({ text, yaml, positionOf }: ParsedText, problems: ProblemSink) {
    this.#text = text
    this.#yaml = yaml
    this.#position = positionOf
    this.#problems = problems
  }

  read(documents: readonly Yaml.Document.Parsed[]): TreeNode | undefined {
    const errors = documents.flatMap((document) => [...document.errors, ...document.warnings])
    // Later mistakes are mostly consequences of the first one, and would only hide it.
    const [error] = errors.sort((a, b) => a.pos[0] - b.pos[0])
    if (error !== undefined) this.#syntaxError(error)
    const [document, second] = documents
    if (second !== undefined && this.#failures === 0) {
      const message = `starts another document (the file holds ${documents.length})`
      this.#fail(this.#position(second.range[0]), '', message, 'keep one document in the file')
    }
    if (document?.directives.yaml.explicit === true && document.directives.yaml.version !== '1.2') {
      this.#fail({ line: 1, column: 1 }, '', 'declares YAML 1.1', 'remove the %YAML line')
    }
    if (this.#failures > 0 || document === undefined) return undefined
    const { contents } = document
    if (contents === null || (this.#yaml.isScalar(contents) && contents.value === null)) {
      this.#fail({ line: 1, column: 1 }, '', 'is empty', 'it must hold an AgentConfiguration')
      return undefined
    }
    const root = this.#node(contents, '', { line: 1, column: 1 })
    if (root !== undefined && root.size > maximumNodes) {
      this.#fail(root, '', `stands for ${root.size} values once its aliases are expanded`, 'use fewer aliases')
    }
    return this.#failures === 0 ? root : undefined
  }

  #node(node: Yaml.ParsedNode | null, place: string, fallback: Position): TreeNode | undefined {
    const at = node === null ? fallback : this.#position(node.range[0])
    if (node === null) return { kind: 'scalar', value: null, source: '', size: 1, ...at }
    if (this.#yaml.isAlias(node)) {
      const target = this.#anchors.get(node.source)
      if (target !== undefined) return { ...target, ...at }
      const message = this.#open.has(node.source) ? 'is an alias of a value that contains it' : 'is an unknown alias'
      this.#fail(at, place, message)
      return undefined
    }
    if (node.tag !== undefined && !plainTags.has(node.tag)) {
      this.#fail(at, place, 'has a YAML tag, which holdfast does not support', 'remove it')
      return undefined
    }
    const { anchor } = node
    if (anchor !== undefined) {
      this.#anchors.delete(anchor)
      this.#open.add(anchor)
    }
    const read = this.#yaml.isMap(node)
      ? this.#mapping(node.items, place, at)
      : this.#yaml.isSeq(node)
        ? this.#list(node.items, place, at)
        : this.#scalar(node, place, at)
    if (anchor !== undefined) {
      this.#open.delete(anchor)
      if (read !== undefined) this.#anchors.set(anchor, read)
    }
    return read
  }

  #mapping(items: readonly MappingItem[], place: string, at: Position): TreeMapping {
    const entries = new Map<string, MapEntry>()
    let size = 1
    for (const { key, value } of items) {
      const name = key === null ? at : this.#position(key.range[0])
      if (key === null || !this.#yaml.isScalar(key) || typeof key.value !== 'string') {
        // YAML reads `{{ .Values.x }}` as a mapping in place of a name.
        const isTemplate = key !== null && this.#yaml.isMap(key)
        const advice = isTemplate ? templateAdvice : undefined
        this.#problems.add(name, place, 'has a field whose name is not a string', advice)
        continue
      }
      const field = fieldPlace(place, key.value)
      if (key.value === '<<') {
        this.#problems.add(name, field, 'merge keys are not supported', 'use an alias for the whole value')
        continue
      }
      const first = entries.get(key.value)
      if (first !== undefined) this.#problems.add(name, field, `is given twice, first in line ${first.name.line}`)
      const read = this.#node(value, field, name)
      if (read === undefined || first !== undefined) continue
      entries.set(key.value, { name, value: read })
      size += read.size
    }
    return { kind: 'mapping', entries, size, ...at }
  }

  #list(items: readonly Yaml.ParsedNode[], place: string, at: Position): TreeList {
    const read = items
      .map((item, index) => this.#node(item, `${place}[${index}]`, at))
      .filter((item) => item !== undefined)
    return { kind: 'list', items: read, size: read.reduce((sum, item) => sum + item.size, 1), ...at }
  }

  #scalar(node: Yaml.Scalar.Parsed, place: string, at: Position): TreeScalar | undefined {
    const { value, source }: { value: unknown; source: string } = node
    if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
      return { kind: 'scalar', value, source, size: 1, ...at }
    }
    this.#fail(at, place, 'has a value of a kind that holdfast does not support')
    return undefined
  }

  #syntaxError(error: Yaml.YAMLError): void {
    // The parser's own sentence is not used: it quotes the text.
    const code = isUnclosed(error) ? 'UNCLOSED' : isMisplaced(error) ? 'BAD_INDENT' : error.code
    const meaning = syntaxErrors[code] ?? 'is not valid YAML here'
    const at = this.#position(error.pos[0])
    // How deep the parser comes into a line depends on the stack that is free.
    const isTemplate = this.#text.split('\n')[at.line - 1]?.includes('{{') === true
    const place = code === 'RESOURCE_EXHAUSTION' ? { ...at, column: 1 } : at
    this.#fail(place, '', meaning, isTemplate ? templateAdvice : undefined)
  }

  #fail(at: Position, place: string, message: string, suggestion?: string): void {
    this.#failures++
    this.#problems.add(at, place, message, suggestion)
  }
}

interface MappingItem {
  readonly key: Yaml.ParsedNode | null
  readonly value: Yaml.ParsedNode | null
}

/** Where a field stands: `source.files`; a name that is no plain word is quoted. */
export function fieldPlace(parent: string, name: string): string {
  const shown = /^[A-Za-z][\w-]{0,63}$/.test(name) ? name : quote(name)
  return parent === '' ? shown : `${parent}.${shown}`
}

const plainTags = new Set(
  ['map', 'seq', 'str', 'int', 'float', 'bool', 'null'].map((name) => `tag:yaml.org,2002:${name}`),
)

/** The parser calls it a matter of indentation where a line that should have closed a bracket does not. */
function isUnclosed({ code, message }: Yaml.YAMLError): boolean {
  return code === 'BAD_INDENT' && /^Flow (?:map|sequence|collection)\b/.test(message)
}

/** And a missing character, where a line is indented as an item of a list is. */
function isMisplaced({ code, message }: Yaml.YAMLError): boolean {
  return code === 'MISSING_CHAR' && message.startsWith('Sequence item without')
}

const syntaxErrors: Partial<Record<Yaml.YAMLError['code'] | 'UNCLOSED', string>> = {
  UNCLOSED: 'is not valid YAML: a bracket that was opened before is not closed',
  BAD_ALIAS: 'is not valid YAML: a bad alias or anchor',
  BAD_DIRECTIVE: 'is not valid YAML: a bad % directive',
  BAD_DQ_ESCAPE: 'is not valid YAML: a bad escape in a double-quoted text',
  BAD_INDENT: 'is not valid YAML: the indentation does not match the lines around it',
  BAD_SCALAR_START: 'is not valid YAML: a value that starts with this character needs quotes',
  BLOCK_AS_IMPLICIT_KEY: 'is not valid YAML: a nested mapping must start on its own line',
  BLOCK_IN_FLOW: 'is not valid YAML: an indented block inside brackets',
  MISSING_CHAR: 'is not valid YAML: a bracket, quote, comma or colon is missing',
  MULTILINE_IMPLICIT_KEY: 'is not valid YAML: a field name must be on one line, with a colon after it',
  RESOURCE_EXHAUSTION: 'is nested too deeply to be read',
  TAB_AS_INDENT: 'is not valid YAML: a tab is used as indentation',
  TAG_RESOLVE_FAILED: 'has a YAML tag, which holdfast does not support: remove it',
  UNEXPECTED_TOKEN: 'is not valid YAML: unexpected here',
}
