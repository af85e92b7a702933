/*
 * From a parsed YAML document to the values that kubelet, kubectl and client-go decode: as go.yaml.in/yaml/v2 reads them without knowing their types
 * (decode.go), and sigs.k8s.io/yaml turns them into JSON.
 */
import type * as Yaml from 'yaml'
import { ExactNumber } from './exact-number.js'
import { integerOf, resolvePlain, resolveQuoted, type PlainValue } from './go-scalars.js'
import { YamlError, type ParsedText, type Position } from './parse.js'

type Node = Yaml.Node | null

/** The most values that aliases may make of a text: kubelet allows more to a text that is large without them. */
const aliasLimits = { values: 400_000, free: 1_000, share: 0.99 }

const textTag = 'tag:yaml.org,2002:str'

/** Tags that ask for the meaning that an unquoted scalar has anyway. */
const typeTags: Readonly<Record<string, (value: PlainValue, text: string) => boolean>> = {
  'tag:yaml.org,2002:bool': (value) => typeof value === 'boolean',
  // Go makes a float of an integer, unless it would lose digits by that.
  'tag:yaml.org,2002:float': (value) => typeof value === 'number',
  'tag:yaml.org,2002:int': (_, text) => integerOf(text) !== undefined,
  'tag:yaml.org,2002:null': (value) => value === null,
}

const binaryTag = 'tag:yaml.org,2002:binary'
const mergeTag = 'tag:yaml.org,2002:merge'
/** Its value must be a time there, and stays text. */
const timeTag = 'tag:yaml.org,2002:timestamp'

export interface ReadContents {
  /** Maps, lists, texts, numbers, booleans, null. */
  readonly value: unknown
  /** Where a field stands that stood before in the same map: the last one counts. */
  readonly repeated: Position | undefined
}

/** How a text is read: as YAML, or as JSON. */
interface ReadingRules {
  /** What an unquoted scalar means; undefined refuses it. */
  readonly plain: (text: string) => PlainValue | undefined
  /** The same of a text in double quotes, without them. Absent: what the parser here makes of it. */
  readonly quoted?: (text: string) => string | undefined
  /** What counts of a field that stands twice; Go's decoder of JSON reads the second map into the first (encoding/json, Unmarshal). */
  readonly repeats: 'last' | 'merged'
}

const asYaml: ReadingRules = { plain: resolvePlain, quoted: resolveQuoted, repeats: 'last' }

/**
 * The value of a document's contents.
 * @throws YamlError, with the position; RangeError for contents that nest too deeply
 */
export function readContents(contents: Node, parsed: ParsedText, reading: ReadingRules = asYaml): ReadContents {
  const reader = new Reader(parsed, reading)
  const value = reader.value(contents)
  return { value, repeated: reader.repeated }
}

class Reader {
  repeated: Position | undefined
  readonly #yaml: typeof Yaml
  readonly #parsed: ParsedText
  /** Where the text ends, if it does so without a newline. */
  readonly #endsOpen: number
  readonly #anchors = new Map<string, Yaml.Node>()
  /** A text may reuse an anchor's name: the first meeting with an alias decides its anchor. */
  readonly #targets = new Map<Yaml.Alias, Yaml.Node>()
  readonly #open = new Set<Yaml.Node>()
  #aliasDepth = 0
  #values = 0
  #aliased = 0

  constructor(
    parsed: ParsedText,
    private readonly reading: ReadingRules,
  ) {
    const { yaml, text } = parsed
    this.#parsed = parsed
    this.#yaml = yaml
    this.#endsOpen = text.endsWith('\n') ? Infinity : text.length
  }

  value(node: Node): unknown {
    if (node === null) return null
    this.#count(node)
    if (this.#yaml.isAlias(node)) return this.#within(node, (target) => this.value(target))
    this.#remember(node)
    if (this.#yaml.isMap(node)) return Object.fromEntries(this.#entries(node))
    if (this.#yaml.isSeq(node)) return this.#inside(node, () => node.items.map((item) => this.value(item as Node)))
    if (!this.#yaml.isScalar(node)) throw this.#error('not valid YAML', node)
    const value = this.#scalar(node)
    if (value === undefined) throw this.#error('JSON, into which Kubernetes turns it, has no such number', node)
    return value
  }

  /** The fields of a mapping, in order: a merge (`<<`) replaces fields before it, and later fields replace merged ones. */
  #entries(map: Yaml.YAMLMap): Map<string, unknown> {
    return this.#inside(map, () => {
      const entries = new Map<string, unknown>()
      const own = new Set<string>()
      for (const pair of map.items) {
        const key = pair.key as Node
        if (this.#isMerge(key)) {
          for (const [name, value] of this.#merged(pair.value as Node, map)) entries.set(name, value)
          continue
        }
        const name = this.#key(key, map)
        const value = this.value(pair.value as Node)
        const isRepeated = own.has(name)
        if (isRepeated) this.repeated ??= this.#error('', key ?? map).position
        own.add(name)
        entries.set(
          name,
          isRepeated && this.reading.repeats === 'merged' ? mergedMaps(entries.get(name), value) : value,
        )
      }
      return entries
    })
  }

  #merged(node: Node, map: Yaml.YAMLMap): Map<string, unknown> {
    if (this.#yaml.isAlias(node)) return this.#within(node, (target) => this.#mapping(target, map))
    if (!this.#yaml.isSeq(node)) return this.#mapping(node, map)
    this.#remember(node)
    // The first of several comes last, and so wins.
    const maps = [...node.items].reverse().map((item) => [...this.#merged(this.#noList(item as Node, map), map)])
    return new Map(maps.flat())
  }

  #noList(node: Node, map: Yaml.YAMLMap): Node {
    if (this.#yaml.isSeq(node)) throw this.#error('a merge key (<<) takes mappings', map)
    return node
  }

  #mapping(node: Node, map: Yaml.YAMLMap): Map<string, unknown> {
    if (!this.#yaml.isMap(node)) throw this.#error('a merge key (<<) takes mappings', map)
    this.#count(node)
    this.#remember(node)
    return this.#entries(node)
  }

  #isMerge(key: Node): boolean {
    if (!this.#yaml.isScalar(key) || key.value !== '<<') return false
    return key.tag === mergeTag || key.tag === '!' || (key.type === 'PLAIN' && key.tag === undefined)
  }

  #key(node: Node, map: Yaml.YAMLMap): string {
    if (this.#yaml.isAlias(node)) return this.#within(node, (target) => this.#key(target, map))
    if (node !== null) {
      this.#count(node)
      this.#remember(node)
    }
    const value = this.#yaml.isScalar(node) ? this.#scalar(node) : null
    if (typeof value === 'string' || typeof value === 'boolean') return String(value)
    // A float is written in another way there, `1e6` as `1e+06`.
    const isWhole = this.#yaml.isScalar(node) && integerOf(String(node.value)) !== undefined
    if (typeof value === 'number' && isWhole && Number.isSafeInteger(value)) return String(value)
    throw this.#error('a field whose name is neither text nor a whole number: quote it', node ?? map)
  }

  /** undefined for a value that no JSON has. */
  #scalar(node: Yaml.Scalar): PlainValue | undefined {
    const text = this.#text(node)
    const { tag } = node
    // `!!str]` is a tag and the end of a list to the parser here, and a broken tag to kubelet's.
    if (tag !== undefined && text === '' && node.type === 'PLAIN') throw this.#error('a YAML tag without a value', node)
    if (tag === textTag || (tag === undefined && node.type !== 'PLAIN')) return text
    if (tag === binaryTag) return this.#binary(text, node)
    // A tag of any other kind makes text of a scalar, and nothing of a collection.
    if (tag !== undefined && tag !== timeTag && !Object.hasOwn(typeTags, tag)) return text
    const value = this.reading.plain(text)
    if (value !== undefined && tag !== undefined && typeTags[tag]?.(value, text) !== true)
      throw this.#error('a YAML tag that does not fit its value: remove it', node)
    return value
  }

  /** The parser here adds the newline that a block at the end of the text lacks, and knows the escapes of YAML 1.2. */
  #text(node: Yaml.Scalar): string {
    const { value, type, range } = node
    const text = String(value)
    if (type === 'QUOTE_DOUBLE' && this.reading.quoted !== undefined) {
      const [from = 0, to = 0] = range ?? []
      const source = this.#parsed.text.slice(from + 1, to - 1)
      const read = source.includes('\\') ? this.reading.quoted(source) : text
      if (read !== undefined) return read
      throw this.#error('an escape (\\) that Kubernetes does not know: write the character itself', node)
    }
    const isBlock = type === 'BLOCK_LITERAL' || type === 'BLOCK_FOLDED'
    return isBlock && (range?.[2] ?? 0) >= this.#endsOpen ? text.replace(/\n$/, '') : text
  }

  /** The library refuses a base64 that Go's decoder refuses; JSON then has a mark for each byte that is not UTF-8. */
  #binary(text: string, node: Yaml.Scalar): string {
    const base64 = text.replaceAll(/[\r\n]/g, '')
    if (/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(base64)) {
      return Buffer.from(base64, 'base64').toString('utf8')
    }
    throw this.#error('a !!binary value that is not base64', node)
  }

  #within<T>(alias: Yaml.Alias, read: (target: Yaml.Node) => T): T {
    const target = this.#targets.get(alias) ?? this.#anchors.get(alias.source)
    if (target === undefined) throw this.#error('not valid YAML (an unknown alias, or too many aliases)', alias)
    if (this.#open.has(target)) {
      throw this.#error('it has an alias inside the value that the alias stands for', alias)
    }
    this.#targets.set(alias, target)
    this.#aliasDepth++
    const value = read(target)
    this.#aliasDepth--
    return value
  }

  #inside<T>(node: Yaml.YAMLMap | Yaml.YAMLSeq, read: () => T): T {
    this.#open.add(node)
    const value = read()
    this.#open.delete(node)
    return value
  }

  #remember(node: Exclude<Yaml.Node, Yaml.Alias>): void {
    const { anchor } = node as { anchor?: string }
    if (anchor !== undefined && this.#aliasDepth === 0) this.#anchors.set(anchor, node)
  }

  #count(node: Yaml.Node): void {
    this.#values++
    if (this.#aliasDepth > 0) this.#aliased++
    const { values, free, share } = aliasLimits
    const isExcessive = this.#values > free && this.#aliased / this.#values > share
    if (isExcessive || (this.#aliased > 0 && this.#values > values)) {
      throw this.#error('not valid YAML (an unknown alias, or too many aliases)', node)
    }
  }

  #error(problem: string, { range }: Yaml.Node): YamlError {
    return new YamlError(problem, range ? this.#parsed.positionOf(range[0]) : undefined)
  }
}

/** A second list's items, too, add to those of the first. */
function mergedMaps(before: unknown, after: unknown): unknown {
  if (Array.isArray(before) && Array.isArray(after))
    return after.map((item: unknown, index) => mergedMaps(before[index], item))
  if (!isMap(before) || !isMap(after)) return after
  const both = Object.entries(after).map(([key, value]) => [key, mergedMaps(before[key], value)] as const)
  return { ...before, ...Object.fromEntries(both) }
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber)
}
