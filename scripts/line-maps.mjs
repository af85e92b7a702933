/**
 * Source maps that lead to lines, not to each word of them: people read a stack by its lines, and the maps of the package take a third of
 * the space.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { decode, encode } from '@jridgewell/sourcemap-codec'

/** All maps below the directory. */
export function leadToLines(directory) {
  for (const name of readdirSync(directory, { recursive: true })) {
    if (!/\.c?js\.map$/.test(name)) continue
    const path = join(directory, name)
    const map = JSON.parse(readFileSync(path, 'utf8'))
    const mappings = encode(decode(map.mappings).map(withoutColumns))
    writeFileSync(path, JSON.stringify({ ...map, names: [], mappings }))
  }
}

/** Of the segments of one line of the output, the first of each line of a source. */
function withoutColumns(segments) {
  let last = []
  return segments.flatMap(([column, source, line]) => {
    if (source === undefined || (source === last[0] && line === last[1])) return []
    last = [source, line]
    return [[column, source, line, 0]]
  })
}
