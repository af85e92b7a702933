/** The problem of bytes that are no text, for messages. */
export const notText = 'it is not UTF-8 text, nor UTF-16 with a byte order mark'

/**
 * The text of a YAML or JSON file, as the YAML library of Kubernetes finds it (yaml/v2, readerc.go): UTF-8, or UTF-16 with a byte order
 * mark, which stays: kubelet then takes no text for JSON. undefined: the bytes are no text.
 */
export function decodeYaml(bytes: Uint8Array): string | undefined {
  const [first, second] = bytes
  const isBig = first === 0xfe && second === 0xff
  const encoding = isBig || (first === 0xff && second === 0xfe) ? 'utf-16le' : 'utf-8'
  if (isBig && bytes.length % 2 !== 0) return undefined
  try {
    const inOrder = isBig ? Buffer.from(bytes).swap16() : bytes
    return new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(inOrder)
  } catch {
    return undefined
  }
}
