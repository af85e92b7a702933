/**
 * The one place where YAML is parsed. What the parser says in its own words may quote the text, which may be a key: only its code
 * and the position are ever repeated.
 */
import type * as Yaml from 'yaml'
import type { DocumentOptions, ParseOptions, SchemaOptions } from 'yaml'

/** How to read each kind of file: as strictly as its own readers do, and no differently. @internal */
export const dialects = {
  /** All that some reader takes for YAML. */
  any: { merge: true },
  /** YAML 1.2 and nothing else: it has no merge keys; tree.ts, which knows places, finds a field that stands twice. */
  configuration: { version: '1.2', schema: 'core', merge: false, strict: true },
  /** Manifests, objects and kubeconfigs: texts alone, and each field as often as it stands. go-values.ts says what they mean to Kubernetes. */
  manifest: { schema: 'failsafe', resolveKnownTags: false, merge: false },
} as const satisfies Record<Dialect, ParseOptions & DocumentOptions & SchemaOptions>

/** From 1. */
export interface Position {
  readonly line: number
  readonly column: number
}

/** The text breaks the rules of its dialect. The error quotes nothing of it. */
export class YamlError extends Error {
  override readonly name = 'YamlError'
  constructor(
    /** Without its place: `not valid YAML (BAD_INDENT)`. */
    readonly problem: string,
    /** undefined: the text as a whole. */
    readonly position?: Position,
  ) {
    super(position === undefined ? problem : `line ${position.line}: ${problem}`)
  }
}

export interface ParsedText {
  readonly text: string
  readonly yaml: typeof Yaml
  /** At least one, but for a text that holds nothing. Their errors have not been looked at. */
  readonly documents: readonly Yaml.Document.Parsed[]
  readonly positionOf: (offset: number) => Position
}

/** @throws YamlError for a text that is nested too deeply to be parsed */
export async function parseText(text: string, dialect: Dialect): Promise<ParsedText> {
  // Late: a process that reads no YAML need not hold the parser, which takes five megabytes.
  const yaml = await import('yaml')
  const lineCounter = new yaml.LineCounter()
  const common = { lineCounter, prettyErrors: false, logLevel: 'silent' } as const
  // Each reader finds keys that stand twice by itself: the parser takes the square of their number for it.
  const unchecked = { uniqueKeys: false } as const
  const positionOf = (offset: number): Position => {
    const { line, col } = lineCounter.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
  const isExplicit = questionMark.test(text)
  // go-scanner.ts asks where a key in brackets begins.
  const isMarked = dialect === 'manifest' && /[[{]/.test(text) && /[&!?]/.test(text)
  try {
    const options = { ...common, ...unchecked, ...dialects[dialect], keepSourceTokens: isExplicit || isMarked }
    const found = yaml.parseAllDocuments(text, options)
    const documents = 'empty' in found ? [] : found
    if (isExplicit) for (const document of documents) reportDropped(document, yaml)
    return { text, yaml, documents, positionOf }
  } catch {
    throw new YamlError('it is nested too deeply')
  }
}

/** A key that a question mark may begin. */
const questionMark = /(?:^|[\s?:-])\?(?:\s|$)/

/** The parser drops a value that comes after such a key without a colon: `? x`, and `- y` in the next line. Go's parser refuses it. */
function reportDropped(document: Yaml.Document.Parsed, yaml: typeof Yaml): void {
  yaml.visit(document, {
    Pair: (_, { srcToken }: Yaml.Pair) => {
      const { sep = [], value } = srcToken ?? {}
      if (!value || sep.some(({ type }) => type === 'map-value-ind')) return
      document.errors.push(new yaml.YAMLParseError([value.offset, value.offset + 1], 'MISSING_CHAR', 'no colon'))
    },
  })
}

export type Dialect = 'any' | 'configuration' | 'manifest'
