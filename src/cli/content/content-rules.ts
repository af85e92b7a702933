import { messageOf } from '../../errors.js'
import type { ContentKind } from './content-kinds.js'

/**
 * Answers why content is not of a kind, in a sentence that quotes nothing of it. undefined: it is of that kind. `doubt` is told what may be wrong
 * with it.
 */
export type ContentRule = (content: Uint8Array, doubt: (sentence: string) => void) => Promise<string | undefined>

/** The rules of `write --validate`. Each loads its parser when it runs. */
export const contentRules = {
  pem: async (content) => {
    const { pemProblem } = await import('../../x509/certificates.js')
    return withSubject(pemProblem(content))
  },
  'key-pair': async (content) => {
    const { keyPairProblem } = await import('../../x509/certificates.js')
    return withSubject(keyPairProblem(content))
  },
  yaml: async (content) => {
    const { readYaml } = await import('../../yaml/read.js')
    return problemOf(async () => {
      const documents = await readYaml(decode(content), 'any')
      if (documents.every(({ value }) => value === null)) throw new Error('it holds no YAML document')
    })
  },
  json: async (content) => {
    const { readJson } = await import('../../yaml/read.js')
    return problemOf(() => readJson(decode(content)))
  },
  pod: async (content, doubt) => {
    const { doubtsOf, parseManifest, refuseUnrunnable } = await import('../../static-pods/pod/manifest.js')
    return problemOf(async () => {
      const manifest = await parseManifest(content, 'the manifest')
      refuseUnrunnable(manifest, 'the manifest')
      doubtsOf(manifest).forEach(doubt)
    })
  },
} satisfies Record<ContentKind, ContentRule>

function withSubject(problem: string | undefined): string | undefined {
  return problem === undefined ? undefined : `it ${problem}`
}

async function problemOf(check: () => unknown): Promise<string | undefined> {
  try {
    await check()
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

/** A byte order mark stays: neither JSON nor kubelet takes one for nothing. */
function decode(content: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content)
  } catch {
    throw new Error('it is not UTF-8 text')
  }
}
