/*
 * The text of a manifest, read as kubelet reads it: sigs.k8s.io/yaml over go.yaml.in/yaml/v2, which is YAML 1.1 where
 * that matters to a pod: `0644` is octal (defaultMode), `yes` and `on` are booleans, `<<` merges; but `22:22` is text.
 */
import type { ScalarTag } from 'yaml'

/** The text is not one document of YAML or JSON. The message names the place and quotes nothing. */
export class ManifestTextError extends Error {
  override readonly name = 'ManifestTextError'
}

/** The one document of the text, as a tree: nothing in it contains itself. @throws ManifestTextError */
export async function parseManifestText(text: string): Promise<unknown> {
  try {
    const value = await parse(text)
    JSON.stringify(value)
    return value
  } catch (error) {
    if (error instanceof ManifestTextError) throw error
    if (error instanceof RangeError) throw new ManifestTextError('it is nested too deeply')
    if (error instanceof TypeError) throw new ManifestTextError('it has an alias inside of what the alias stands for')
    throw error
  }
}

async function parse(text: string): Promise<unknown> {
  if (text.trimStart().startsWith('{')) {
    try {
      return JSON.parse(text) as unknown
    } catch {
      // A flow mapping of YAML begins so, too.
    }
  }
  const { LineCounter, parseAllDocuments } = await import('yaml')
  const lineCounter = new LineCounter()
  const documents = parseAllDocuments(text, {
    lineCounter,
    prettyErrors: false,
    logLevel: 'silent',
    stringKeys: true,
    merge: true,
    customTags: (tags) => [octal, word, ...tags],
  })
  const all = 'empty' in documents ? [] : documents
  for (const document of all) {
    const [error] = document.errors
    if (error)
      throw new ManifestTextError(`line ${lineCounter.linePos(error.pos[0]).line}: not valid YAML (${error.code})`)
  }
  const values = all.map((document) => {
    try {
      return document.toJS() as unknown
    } catch {
      throw new ManifestTextError('not valid YAML (an alias that leads nowhere, or too far)')
    }
  })
  const filled = values.filter((value) => value !== null)
  if (filled.length > 1)
    throw new ManifestTextError(`it holds ${filled.length} documents; kubelet reads one pod a file`)
  return filled[0]
}

const octal: ScalarTag = {
  tag: 'tag:yaml.org,2002:int',
  default: true,
  format: 'OCT',
  test: /^[-+]?0[0-7_]+$/,
  resolve: (text) => {
    const digits = text.replace(/[-+_]/g, '')
    return (text.startsWith('-') ? -1 : 1) * Number.parseInt(digits, 8)
  },
}

const word: ScalarTag = {
  tag: 'tag:yaml.org,2002:bool',
  default: true,
  test: /^(?:y|Y|yes|Yes|YES|on|On|ON|n|N|no|No|NO|off|Off|OFF)$/,
  resolve: (text) => /^(?:y|on)/i.test(text),
}
