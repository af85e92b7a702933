import { resolveContext } from '../../../src/kubernetes/credentials/kubeconfig.js'
import { KubeconfigError, parseKubeconfig } from '../../../src/kubernetes/credentials/kubeconfig-file.js'
import type { Target } from '../target.js'

interface Reading {
  readonly server: string
  readonly token: string | undefined
}

export const kubeconfig: Target<Reading> = {
  name: 'kubeconfig',
  files: ['kubernetes/credentials/kubeconfig.js', 'kubernetes/credentials/kubeconfig-file.js'],
  longest: 8192,
  words: [
    'apiVersion: v1\n',
    'kind: Config\n',
    'clusters',
    'users',
    'contexts',
    'current-context: ',
    'cluster',
    'user',
    'context',
    'name: ',
    'server: ',
    'https://a:6443',
    'token: ',
    'tokenFile: ',
    'certificate-authority-data: ',
    'client-key-data: ',
    'insecure-skip-tls-verify: true',
    'proxy-url: ',
    'tls-server-name: ',
    'exec',
    'command: ',
    'as: ',
    'as-groups: [a]',
    'as-user-extra: {a: [b]}',
    'username: ',
    'password: ',
    '!!binary ',
    '<<: ',
    '&a ',
    '*a',
    '- ',
    '\n',
    '  ',
    '{',
    '}',
    '[',
    ']',
    'null',
    '""',
  ],
  async read(input) {
    try {
      const { cluster, user } = resolveContext([await parseKubeconfig(input.toString(), '/nowhere/config')], undefined)
      return { server: cluster.server.href, token: user.token?.type === 'inline' ? user.token.text : undefined }
    } catch (error) {
      if (error instanceof KubeconfigError) return undefined
      throw error
    }
  },
  go: {
    as: 'kubeconfig',
    contradiction: (input, ours, { error, value }) => {
      if (ours === undefined || !input.equals(Buffer.from(input.toString()))) return undefined
      if (error !== undefined) return isMeant(error) ? undefined : `holdfast takes it, and client-go says: ${error}`
      const theirs = value as { server: string; token: string }
      if (theirs.token !== (ours.token ?? '')) return 'another token than to client-go'
      const server = URL.canParse(theirs.server) ? new URL(theirs.server).href : theirs.server
      return server === ours.server ? undefined : `${ours.server}, and to client-go ${theirs.server}`
    },
  },
}

/**
 * client-go opens the files that a kubeconfig names at once, and holdfast at the first request. It reads YAML 1.1, which refuses some of
 * YAML 1.2, and makes numbers and booleans of more words (`n`, `on`, `1_0`): then there is no text that it could take for another one.
 */
function isMeant(error: string): boolean {
  return /no such file|unable to read|yaml: |cannot unmarshal (?:bool|number)/.test(error)
}
