/** What stands for the words that a template may hold. */
export interface Substitutions {
  readonly revision: number
  /** undefined: NODE_NAME and NODE_ENVVAR_NAME are left as they are. */
  readonly nodeName: string | undefined
}

/**
 * Replaces REVISION, then NODE_NAME, then NODE_ENVVAR_NAME (the node's name with `_` for `-` and `.`) in any bytes, which
 * need not be text: all others stay as they are.
 */
export function substitute(bytes: Uint8Array, { revision, nodeName }: Substitutions): Uint8Array {
  const words: [string, string][] = [['REVISION', String(revision)]]
  if (nodeName !== undefined) {
    words.push(['NODE_NAME', nodeName], ['NODE_ENVVAR_NAME', nodeName.replace(/[-.]/g, '_')])
  }
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (words.every(([word]) => !buffer.includes(word, 0, 'latin1'))) return bytes
  // latin1 maps each byte to one character and back, so that nothing is decoded.
  let text = buffer.toString('latin1')
  for (const [word, value] of words) text = text.replaceAll(word, () => value)
  return Buffer.from(text, 'latin1')
}
