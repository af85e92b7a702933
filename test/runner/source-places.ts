/** Places in compiled modules as places in their sources. */
import { readFileSync } from 'node:fs'
import { SourceMap, type SourceMapPayload } from 'node:module'
import { join } from 'node:path'
import { project } from '../project.js'

const maps = new Map<string, SourceMap | undefined>()

function mapOf(module: string): SourceMap | undefined {
  if (!maps.has(module)) maps.set(module, read(module))
  return maps.get(module)
}

function read(module: string): SourceMap | undefined {
  try {
    return new SourceMap(
      JSON.parse(readFileSync(join(project, 'dist', `${module}.js.map`), 'utf8')) as SourceMapPayload,
    )
  } catch {
    return undefined
  }
}

const place = new RegExp(
  `(?:file://)?(?:${project.replace(/[^\w/]/g, '\\$&')}/)?dist/([\\w./-]+)\\.js:(\\d+):(\\d+)`,
  'g',
)

/** `dist/test/x.test.js:10:5` becomes `test/x.test.ts:12:7`. */
export function inSources(text: string): string {
  return text.replace(place, (whole, module: string, line: string, column: string) => {
    const entry = mapOf(module)?.findEntry(Number(line) - 1, Number(column) - 1)
    if (entry === undefined || !('originalLine' in entry)) return whole
    return `${module}.ts:${entry.originalLine + 1}:${entry.originalColumn + 1}`
  })
}
