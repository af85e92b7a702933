import { escaped } from '../../message-text.js'
import { printJson, type Output } from './io.js'
import type { DirectoryChange } from '../../durable/publish/index.js'

/* A command's output: one document, for a program or for people. */

/** `wide`: the text with further columns; a text without any stays the same. */
export const outputFormats = ['text', 'wide', 'json', 'yaml'] as const

/** `name`: the paths that the command is about, one a line, as kubectl's. */
export const nameFormats = [...outputFormats, 'name'] as const

/** `none`: with --quiet. */
export type OutputFormat = (typeof nameFormats)[number] | 'none'

/** Prints it as YAML: the same document as in JSON. */
export async function printYaml(output: Output, documents: readonly object[], headline = ''): Promise<void> {
  const { Document, visit } = await import('yaml')
  // By way of JSON: YAML would write dates and undefined in forms that JSON lacks.
  const plain = documents.map((document) => JSON.parse(JSON.stringify(document)) as unknown)
  const texts = plain.map((value) => {
    const document = new Document(value, { aliasDuplicateObjects: false })
    visit(document, {
      Scalar: (_, scalar) => {
        // Escapes mean something in double quotes alone.
        if (typeof scalar.value === 'string' && escaped(scalar.value) !== scalar.value) scalar.type = 'QUOTE_DOUBLE'
      },
    })
    return escaped(document.toString({ lineWidth: 0 }))
  })
  output.write(headline + texts.join('---\n'))
}

/** `text`: makes the text for people, only where it is printed. */
export async function print(
  output: Output,
  format: OutputFormat,
  document: object,
  text: (wide: boolean) => string,
): Promise<void> {
  if (format === 'json') printJson(output, document)
  else if (format === 'yaml') await printYaml(output, [document])
  else if (format === 'name')
    output.write(
      pathsOf(document)
        .map((path) => `${path}\n`)
        .join(''),
    )
  else if (format !== 'none') output.write(text(format === 'wide'))
}

/** Of its directories, or its own. */
function pathsOf(document: {
  readonly path?: string
  readonly directories?: readonly { readonly path: string }[]
}): string[] {
  const { path, directories } = document
  return directories?.map((directory) => directory.path) ?? (path === undefined ? [] : [path])
}

/** Whether a program reads standard output, so that an error belongs there, too. */
export function isForPrograms(format: unknown): format is 'json' | 'yaml' {
  return format === 'json' || format === 'yaml'
}

/* How a dry run says what would be done: in the words of the result, and as each command says it. */

/** The result's word; of a dry run, what would be. */
export function outcomeText(outcome: string, dryRun: boolean): string {
  return dryRun && ['created', 'replaced', 'removed'].includes(outcome) ? `would be ${outcome}` : outcome
}

/** A line for each path that changes, as below a line of table(). */
export function changesText(changes: readonly DirectoryChange[] = []): string {
  const signs = { add: '+', change: '~', remove: '-' }
  return changes.map(({ path, change }) => `  ${signs[change]} ${escaped(path)}\n`).join('')
}
