/**
 * PEM text taken apart into its blocks, with the fault of each. Stricter than OpenSSL where a consumer written in Go would stumble or pass
 * over a block, and silent about text around the blocks, as all readers are. Sources: RFC 7468, RFC 1421 (headers); Go's encoding/pem.
 */

export interface PemBlock {
  /** `CERTIFICATE`, `EC PRIVATE KEY`, … */
  readonly label: string
  /** From 1. */
  readonly line: number
  /** Its body carries RFC 1421 headers that say it is encrypted. */
  readonly encrypted: boolean
  /** The decoded body, or the fault of the block; never any of its content. */
  readonly der: Uint8Array | undefined
  readonly problem: string | undefined
}

/** A label is of printable characters, with single spaces or hyphens between them (RFC 7468, 3). */
const begin = /^-----BEGIN ((?=.{1,64}-----)[!-,.-~](?:[- ]?[!-,.-~])*)-----[ \t]*$/
/** A BEGIN line that does not begin its line, behind indentation, a byte order mark, words. */
const lateBegin = /^(.+?)(-----BEGIN (?=.{1,64}-----)[!-,.-~](?:[- ]?[!-,.-~])*-----[ \t]*)$/s
/** It is seen by nobody, and is no indentation: neither YAML nor words put it there. */
const invisible = /^[^!-~]*[^!-~ \t][^!-~]*$/
const base64Line = /^[A-Za-z0-9+/]*={0,2}$/

/**
 * The blocks that begin at the start of a line, and as faulty ones those that begin behind something else on their line: Go passes over
 * these, and OpenSSL over some. Text of another kind that holds none of the first gives none, DER or YAML say.
 */
export function pemBlocks(content: Uint8Array): PemBlock[] {
  // One character for each byte: no byte is lost, and none can be refused.
  const lines = Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString('latin1').split(/\r?\n/)
  const blocks: PemBlock[] = []
  let isPem = false
  // The END line of the last block is still to come.
  let isOpen = false
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] ?? ''
    if (line.startsWith('-----END ')) {
      if (!isOpen)
        blocks.push(faulty(labelOf(line), index + 1, 'its END line has no BEGIN line: Go reads nothing of it'))
      isOpen = false
      continue
    }
    if (!line.startsWith('-----BEGIN ')) {
      const [, before = '', late] = lateBegin.exec(line) ?? []
      if (late === undefined || isComment(before, lines[index + 1])) continue
      isPem ||= invisible.test(before)
      const what = /[!-~]/.test(before) ? 'text' : invisible.test(before) ? 'invisible characters' : 'spaces'
      blocks.push(faulty(labelOf(late), index + 1, `its BEGIN line has ${what} before it: Go reads nothing of it`))
      isOpen = true
      continue
    }
    isPem = true
    const label = begin.exec(line)?.[1]
    if (label === undefined) {
      const known = labelOf(line)
      blocks.push(faulty(known, index + 1, 'its BEGIN line is incomplete, or has other text after it'))
      // Its END line may have the label that this one lacks.
      isOpen = known !== unknown
      continue
    }
    const end = findEnd(lines, index + 1, label)
    const body = lines.slice(index + 1, end.index)
    blocks.push(end.problem === undefined ? decodePem(label, index + 1, body) : faulty(label, index + 1, end.problem))
    isOpen = end.problem !== undefined
    // The line begins the next block, though this one has no end: read it again.
    index = end.problem === undefined ? end.index : end.index - 1
  }
  return isPem ? blocks : []
}

/** What stands before a block that is commented out, or in a quotation, stands before its next line, too. */
function isComment(before: string, next = ''): boolean {
  const [, mark] = /^\s*([^\w\s]+)/.exec(before) ?? []
  return mark !== undefined && /^[!-~]+$/.test(mark) && next.trimStart().startsWith(mark)
}

/** Looks like DER: an ASN.1 SEQUENCE whose length is that of the whole content. */
export function looksLikeDer(content: Uint8Array): boolean {
  return derLength(content) === content.byteLength
}

/** Length that the outer SEQUENCE claims, its head included; undefined for anything else. Source: X.690, 8.1.3. */
export function derLength(content: Uint8Array): number | undefined {
  const [tag, short] = content
  if (tag !== 0x30 || short === undefined) return undefined
  if (short < 0x80) return short + 2
  const count = short & 0x7f
  if (count === 0 || count > 4 || content.byteLength < count + 2) return undefined
  return content.subarray(2, 2 + count).reduce((length, byte) => length * 256 + byte, 0) + 2 + count
}

/** The line of the matching END, or where the search ended and why. */
function findEnd(lines: readonly string[], from: number, label: string): { index: number; problem?: string } {
  for (let index = from; index < lines.length; index++) {
    const line = lines[index] ?? ''
    if (line.startsWith('-----BEGIN ')) return { index, problem: 'it has no END line before the next block' }
    if (!line.startsWith('-----END ')) continue
    if (trimmed(line) === `-----END ${label}-----`) return { index }
    const after = line.startsWith(`-----END ${label}-----`)
    const problem = after ? 'its END line has other text after it' : 'its END line names another kind'
    return { index: index + 1, problem }
  }
  return { index: lines.length, problem: 'it is cut short: it has no END line' }
}

function decodePem(label: string, line: number, body: readonly string[]): PemBlock {
  const { headers, rest, problem } = splitHeaders(body.map(trimmed))
  const encrypted = headers.some((header) => /^Proc-Type:.*ENCRYPTED/.test(header))
  const fault = (what: string): PemBlock => faulty(label, line, what, encrypted)
  if (problem !== undefined) return fault(problem)
  if (label === 'CERTIFICATE' && headers.length > 0 && !encrypted) return fault('it has headers: Go passes over it')
  if (!rest.every((part) => base64Line.test(part))) return fault('its body is not base64')
  const base64 = rest.join('')
  if (base64 === '') return fault('its body is empty')
  if (rest.includes('')) return fault('it has an empty line inside: OpenSSL takes what is above it for headers')
  if (!/^[^=]*={0,2}$/.test(base64) || base64.length % 4 !== 0) return fault('its base64 is incomplete')
  return { label, line, encrypted, der: Buffer.from(base64, 'base64'), problem: undefined }
}

/** Without the spaces that Go and OpenSSL both pass over. */
function trimmed(line: string): string {
  return line.replace(/^[ \t]+/, '').replace(/(?<![ \t])[ \t]+$/, '')
}

interface SplitBody {
  readonly headers: readonly string[]
  readonly rest: readonly string[]
  readonly problem?: string
}

/** An empty line ends the headers; where there are none, it may stand all the same. OpenSSL reads none before Proc-Type. */
function splitHeaders(body: readonly string[]): SplitBody {
  const noHeader = body.findIndex((line) => !line.includes(':'))
  const end = noHeader < 0 ? body.length : noHeader
  const headers = body.slice(0, end)
  if (end === 0 && body[0] !== '') return { headers, rest: body }
  const found = { headers, rest: body.slice(end + 1) }
  if (end === 0) return found
  // Go ends them at the first line without a colon, whatever it is.
  if (body[end] !== '') return { ...found, problem: 'its headers do not end with an empty line' }
  const isKnown = /^Proc-Type:/.test(headers[0] ?? '') && !headers.some((header) => header.includes('-----'))
  return isKnown ? found : { ...found, problem: 'its headers do not begin with Proc-Type: OpenSSL refuses them' }
}

function faulty(label: string, line: number, problem: string, encrypted = false): PemBlock {
  return { label, line, encrypted, der: undefined, problem }
}

const unknown = 'unknown'

/** The kind that a damaged BEGIN line names; unknown ones are not repeated, since they may be anything. */
function labelOf(line: string): string {
  const known = ['CERTIFICATE', 'ENCRYPTED PRIVATE KEY', 'RSA PRIVATE KEY', 'EC PRIVATE KEY', 'PRIVATE KEY']
  return known.find((label) => line.includes(label)) ?? unknown
}
