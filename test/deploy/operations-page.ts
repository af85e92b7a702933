/** The YAML that docs/operations.md shows. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { project } from './manifests.js'

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
