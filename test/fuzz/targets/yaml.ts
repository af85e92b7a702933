import * as library from 'yaml'
import { isDeepStrictEqual } from 'node:util'
import { dialects, YamlError } from '../../../src/yaml/parse.js'
import { encodeJson } from '../../../src/yaml/exact-number.js'
import { readManifestText } from '../../../src/yaml/manifest-text.js'
import { readYaml } from '../../../src/yaml/read.js'
import { demand, type Target } from '../target.js'

/** A manifest's value as JSON. */
export const yaml: Target<string> = {
  name: 'yaml',
  files: [
    'yaml/read.js',
    'yaml/parse.js',
    'yaml/go-values.js',
    'yaml/go-scalars.js',
    'yaml/go-scanner.js',
    'yaml/manifest-text.js',
    'yaml/exact-number.js',
  ],
  longest: 8192,
  words: [
    '---\n',
    '...\n',
    '- ',
    ': ',
    '? ',
    '&a ',
    '*a',
    '<<: ',
    '!!str ',
    '!!int ',
    '!!binary ',
    '!!float ',
    '! ',
    '|\n',
    '>-\n',
    '"',
    "'",
    '{',
    '}',
    '[',
    ']',
    '%YAML 1.1\n',
    '#',
    '\n  ',
    '\t',
    '0o17',
    '0x1f',
    '1_000',
    '.inf',
    '~',
    'yes',
    '{"a":1}',
    '\\u0041',
    '\ufeff',
    '\u2028',
    '\u0085',
  ],
  async read(input) {
    const text = input.toString()
    await compareWithLibrary(text)
    try {
      return encodeJson((await readManifestText(text)).value)
    } catch (error) {
      if (error instanceof YamlError || error instanceof RangeError) return undefined
      throw error
    }
  },
  go: {
    as: 'manifest',
    contradiction: (input, ours, { error, value }) => {
      // A pod is a map. A byte that is no UTF-8 has become another character here.
      if (ours?.startsWith('{') !== true || !input.equals(Buffer.from(input.toString()))) return undefined
      if (error !== undefined) return `holdfast takes it, and kubelet says: ${error}`
      // Both at the precision that JSON.parse has.
      const own: unknown = JSON.parse(ours)
      return isDeepStrictEqual(own, value ?? null) ? undefined : `${ours}, and to kubelet ${JSON.stringify(value)}`
    },
  },
}

/** What holdfast reads as a configuration is what the library makes of the text by itself. */
async function compareWithLibrary(text: string): Promise<void> {
  const ours = await valuesOf(text)
  // What holdfast refuses in no time may keep the library busy without end.
  if (ours === undefined) return
  const theirs = libraryValues(text)
  demand(theirs !== undefined, 'holdfast takes it, and the library does not')
  demand(isDeepStrictEqual(ours, theirs), `${JSON.stringify(ours)}, and to the library ${JSON.stringify(theirs)}`)
}

async function valuesOf(text: string): Promise<unknown[] | undefined> {
  try {
    return await readYaml(text, 'configuration')
  } catch (error) {
    if (error instanceof YamlError) return undefined
    throw error
  }
}

function libraryValues(text: string): unknown[] | undefined {
  try {
    const documents = library.parseAllDocuments(text, {
      logLevel: 'silent',
      prettyErrors: false,
      ...dialects.configuration,
    })
    const list = 'empty' in documents ? [] : documents
    return list.some(({ errors }) => errors.length > 0) ? undefined : list.map((document) => document.toJS() as unknown)
  } catch {
    return undefined
  }
}
