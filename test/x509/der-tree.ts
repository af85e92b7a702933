/** DER as a tree that can be changed and written again, so that a change reaches the reader of the changed part. */
import { Der } from '../../src/x509/der.js'

export interface Node {
  tag: number
  /** Its elements, or its bytes. */
  body: Node[] | Buffer
  /** Before its elements: the unused bits of a bit string. */
  head?: Buffer
}

/** Also what an octet string holds, and a bit string. */
export function parsed(der: Uint8Array): Node[] {
  const nodes: Node[] = []
  for (const input = new Der(der); !input.isEmpty;) {
    const { tag, body } = input.any()
    const head = tag === 0x03 ? Buffer.from(body.subarray(0, 1)) : undefined
    const isNested = (tag & 0x20) !== 0 || tag === 0x04 || head?.[0] === 0
    const inner = isNested ? attempt(body.subarray(head?.length ?? 0)) : undefined
    if (inner && inner.length > 0) nodes.push({ tag, body: inner, ...(head && { head }) })
    else nodes.push({ tag, body: Buffer.from(body) })
  }
  return nodes
}

function attempt(body: Uint8Array): Node[] | undefined {
  try {
    return parsed(body)
  } catch {
    return undefined
  }
}

export function written(nodes: readonly Node[]): Buffer {
  return Buffer.concat(
    nodes.map(({ tag, body, head }) => der(tag, head ?? Buffer.of(), Array.isArray(body) ? written(body) : body)),
  )
}

/** DER of one element, its length in the shortest form. */
export function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts)
  const digits = body.length.toString(16)
  const length = Buffer.from(digits.padStart(digits.length + (digits.length % 2), '0'), 'hex')
  const head = body.length < 0x80 ? [tag, body.length] : [tag, 0x80 + length.length, ...length]
  return Buffer.concat([Buffer.from(head), body])
}

/** All of a tree. */
export function flat(nodes: readonly Node[]): Node[] {
  return nodes.flatMap((node) => [node, ...(Array.isArray(node.body) ? flat(node.body) : [])])
}

export function pem(label: string, content: Uint8Array): string {
  const lines =
    Buffer.from(content)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`
}
