/** The YAML that docs/operations.md shows, and its commands with those of the upgrade. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { project } from '../project.js'

export interface Block {
  /** From its first line, `# my-cluster/NAME`; else the number of the block. */
  readonly name: string
  readonly text: string
}

export function yamlBlocks(): Block[] {
  const page = readFileSync(join(project, 'docs/operations.md'), 'utf8')
  return [...page.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, text = ''], index) => ({
    name: /^# my-cluster\/([\w.-]+)/.exec(text)?.[1] ?? String(index),
    text,
  }))
}

/**
 * The words of the command of these pages that begins so, without what follows `#`; `values` has what stands in it for the reader to
 * fill in. So a test runs what the page says.
 * @throws Error unless there is one such line, and it has each of the values' names
 */
export function command(beginning: string, values: Readonly<Record<string, string>> = {}): string[] {
  const pages = ['docs/operations.md', 'docs/upgrade/README.md']
  const lines = pages
    .flatMap((page) => readFileSync(join(project, page), 'utf8').split('\n'))
    .filter((line) => line.startsWith(`    ${beginning}`))
    .map((line) => line.replace(/ +#.*$/, '').trim())
  const [line, ...more] = new Set(lines)
  if (line === undefined || more.length > 0) throw new Error(`the pages have not one command "${beginning} …"`)
  const words = [...line.matchAll(/'([^']*)'|\S+/g)].map(([word, quoted]) => quoted ?? word)
  for (const name of Object.keys(values)) {
    if (!words.includes(name)) throw new Error(`"${line}" has no ${name}`)
  }
  return words.map((word) => values[word] ?? word)
}
