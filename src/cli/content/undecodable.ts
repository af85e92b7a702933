import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { UsageError } from '../words/exit-codes.js'

/** Node puts it in the place of bytes that are no UTF-8: a path with it names another file than the user did. */
const replacement = '\uFFFD'

/**
 * Refuses arguments and variables that are no UTF-8: Linux's paths are bytes, Node's are text, and a path that Node had to decode with
 * replacements names another file. /proc has the original bytes; this reads it only where Node had to replace something.
 * @throws UsageError, which names the argument or the variable
 */
export function refuseUndecodable(argv: readonly string[], environment: NodeJS.ProcessEnv): void {
  const index = argv.findIndex((argument) => argument.includes(replacement))
  if (index >= 0) {
    const bytes = given('cmdline').at(index - argv.length)
    if (bytes !== undefined && !isUtf8(bytes)) throw refusal(`argument ${index + 1}`, bytes)
  }
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith('HOLDFAST_') || value?.includes(replacement) !== true) continue
    const bytes = given('environ').find((variable) =>
      variable.subarray(0, name.length + 1).equals(Buffer.from(`${name}=`)),
    )
    if (bytes !== undefined && !isUtf8(bytes)) throw refusal(name, bytes)
  }
}

/** This process's arguments or variables, each as its bytes. */
function given(what: 'cmdline' | 'environ'): Buffer[] {
  const all = readFileSync(`/proc/self/${what}`)
  const found: Buffer[] = []
  for (let start = 0; start < all.length;) {
    const end = all.indexOf(0, start)
    found.push(all.subarray(start, end < 0 ? all.length : end))
    start = end < 0 ? all.length : end + 1
  }
  return found
}

function refusal(what: string, bytes: Buffer): UsageError {
  const shown = Array.from(bytes, (byte) =>
    byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`,
  ).join('')
  return new UsageError(`${what} is not UTF-8: $'${shown}': rename the file, or name a directory above it`)
}
