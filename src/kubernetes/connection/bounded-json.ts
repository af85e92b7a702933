/**
 * JSON from a server, whose text decides neither memory nor time: JSON.parse takes fifty bytes for a member of three, and a stack for each
 * bracket. So a look at the text comes first, which allocates nothing for what it counts.
 */

import { mostMembers } from '../../kubernetes-names.js'

/** Containers within containers: as many as Go's decoder takes (encoding/json, scanner.go, maxNestingDepth). */
const deepest = 10_000

/** Values of one text, but for those of containers with too many members. */
const mostValues = 400_000

/**
 * Values of one object's text, those of wide containers included, that the look at it counts: the agent runs it without a compiler, half a
 * microsecond a value. A request to the API server has at most 3 MiB (apiserver, server/config.go, MaxRequestBodyBytes), of which etcd takes
 * half by default, and no value costs an object fewer than four bytes there: managed fields need nine, as in `"f:a":{},`, for a map and its
 * comma; a key without a value needs eight. Escapes make a line longer, and add no value.
 */
export const mostValuesOfObject = 750_000

/** The text is JSON that nothing here reads. The message quotes nothing of it. */
export class JsonRefused extends Error {
  override readonly name = 'JsonRefused'
}

/** The text holds too many values. */
export class TooManyValues extends JsonRefused {}

/**
 * The value of a text, in which each map and each list of more than `mostMembers` is the number of its members instead. `most`: values that
 * the text may hold, those of such maps and lists included.
 * @throws JsonRefused
 */
export function parseBounded(text: string, most = Infinity): unknown {
  const bounded = withoutWide(text, most)
  try {
    return JSON.parse(bounded) as unknown
  } catch {
    // The parser's own message quotes the text.
    throw new JsonRefused('is not JSON')
  }
}

interface Wide {
  readonly start: number
  readonly end: number
  readonly members: number
}

function withoutWide(text: string, most: number): string {
  const scan = new JsonScan(most)
  for (let at = 0; at < text.length;) {
    const code = text.charCodeAt(at)
    if (code === quotationMark) {
      at = endOfText(text, at)
      continue
    }
    if (code === openBrace || code === openBracket) scan.open(at)
    else if (code === closeBrace || code === closeBracket) scan.close(at)
    else if (code === comma) scan.comma()
    at += 1
  }
  scan.end()
  let from = 0
  const pieces: string[] = []
  for (const { start, end, members } of scan.wide) {
    pieces.push(text.slice(from, start), String(members))
    from = end
  }
  return pieces.length === 0 ? text : pieces.join('') + text.slice(from)
}

/** Of each open container: where it starts, its members, and the values before it. One scan at a time, so one place for all. */
const starts = new Int32Array(deepest)
const counts = new Int32Array(deepest)
const before = new Int32Array(deepest)

/** Counts by container. What is not JSON is counted anyhow: the parser refuses it. */
class JsonScan {
  /** The outermost containers with too many members, in order. */
  readonly wide: Wide[] = []
  #depth = 0
  #values = 0
  #seen = 0

  constructor(private readonly most: number) {}

  open(at: number): void {
    if (this.#depth >= deepest) throw new JsonRefused(`is nested deeper than ${deepest} levels`)
    starts[this.#depth] = at
    counts[this.#depth] = 1
    before[this.#depth] = this.#values
    this.#depth += 1
    this.#count()
  }

  comma(): void {
    this.#count()
    if (this.#depth > 0) counts[this.#depth - 1] = (counts[this.#depth - 1] ?? 0) + 1
  }

  close(at: number): void {
    if (this.#depth === 0) return
    this.#depth -= 1
    const members = counts[this.#depth] ?? 0
    if (members <= mostMembers) return
    const start = starts[this.#depth] ?? 0
    while ((this.wide.at(-1)?.start ?? -1) > start) this.wide.pop()
    this.wide.push({ start, end: at + 1, members })
    this.#values = (before[this.#depth] ?? 0) + 1
  }

  #count(): void {
    this.#values += 1
    this.#seen += 1
    if (this.#seen > this.most) throw new TooManyValues(`holds more than ${this.most} values`)
  }

  end(): void {
    if (this.#values > mostValues) throw new TooManyValues(`holds more than ${mostValues} values`)
  }
}

const quotationMark = 0x22
const comma = 0x2c
const openBracket = 0x5b
const backslash = 0x5c
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

/** The place behind the text's closing quotation mark; the end, where it has none. */
function endOfText(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); end !== -1; end = json.indexOf('"', end + 1)) {
    let escapes = 0
    while (json.charCodeAt(end - 1 - escapes) === backslash) escapes += 1
    if (escapes % 2 === 0) return end + 1
  }
  return json.length
}
