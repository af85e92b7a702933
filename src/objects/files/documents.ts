/** From the text of a file to its documents. What a parser says in its own words may quote the text, so it is not repeated. */
import { FileFault } from './fault.js'

export interface ParsedDocument {
  readonly value: unknown
  /** `certs.yaml:12`: where it begins. */
  readonly place: string
  /** Where the item of this index begins, for a document that is a List. */
  readonly itemPlace: (index: number) => string
}

/**
 * The documents of a YAML or JSON file that hold anything.
 * @throws FileFault with file, line and kind of error
 */
export async function parseDocuments(name: string, text: string): Promise<ParsedDocument[]> {
  return name.endsWith('.json') ? parseJson(name, text) : parseYaml(name, text)
}

function parseJson(name: string, text: string): ParsedDocument[] {
  if (text.trim() === '') return []
  try {
    const value: unknown = JSON.parse(text)
    return [{ value, place: `${name}:1`, itemPlace: (index) => `${name}: items[${index}]` }]
  } catch (error) {
    const position = /position (\d+)/.exec((error as Error).message)?.[1]
    // Without a position, the text has ended too early.
    const before = text.slice(0, position === undefined ? text.length : Number(position))
    const line = before.trimEnd().split('\n').length
    throw new FileFault(`${name}:${line}: not valid JSON`)
  }
}

async function parseYaml(name: string, text: string): Promise<ParsedDocument[]> {
  // Loaded only where there is YAML: it costs five megabytes.
  // eslint-disable-next-line no-restricted-syntax -- the configuration file was read with it
  const { isNode, LineCounter, parseAllDocuments } = await import('yaml')
  const lineCounter = new LineCounter()
  const placeAt = (offset: number) => `${name}:${lineCounter.linePos(offset).line || 1}`
  const documents = parseAllDocuments(text, {
    lineCounter,
    prettyErrors: false,
    logLevel: 'silent',
    // Keys such as `123` and `true` are strings in Kubernetes.
    stringKeys: true,
  })
  const parsed: ParsedDocument[] = []
  for (const document of 'empty' in documents ? [] : documents) {
    const [error] = document.errors
    if (error) throw new FileFault(`${placeAt(error.pos[0])}: not valid YAML (${error.code})`)
    const place = placeAt(document.contents?.range[0] ?? document.range[0])
    let value: unknown
    try {
      value = document.toJS()
    } catch {
      throw new FileFault(`${place}: not valid YAML (an alias that leads nowhere, or too far)`)
    }
    if (value === null) continue
    const itemPlace = (index: number) => {
      const node = document.getIn(['items', index], true)
      return isNode(node) && node.range ? placeAt(node.range[0]) : place
    }
    parsed.push({ value, place, itemPlace })
  }
  return parsed
}
