/** A faultless configuration, and a mistake in it with the messages that it gets. */

export const sound = `apiVersion: holdfast.dev/v1alpha1
kind: AgentConfiguration
source:
  namespace: kube-system
  kubernetes: { kubeconfig: ./kubeconfig }
directories:
  - path: /srv/certs
    mode: "0755"
    contents:
      - secret: serving-cert
        into: secrets/serving-cert
      - configMap: ca-bundle
        items: [{ key: ca.crt, path: ca.crt }]
      - combine: server.pem
        from: [{ secret: serving-cert, key: tls.key }]
    afterPublish:
      - signal: { name: SIGHUP, pidFile: /run/x.pid }
  - path: ./second
    contents: [{ secret: other }]
server: { address: "127.0.0.1:10808" }
`

export interface BrokenConfiguration {
  readonly mistake: string
  /** Pairs of a text and its replacement. */
  readonly replace: readonly (readonly [string, string])[]
  /** Each line of the message, without the file's name and the colon after it. */
  readonly lines: readonly string[]
}

export function broken(mistake: string, was: string, is: string, ...lines: string[]): BrokenConfiguration {
  return { mistake, replace: [[was, is]], lines }
}

/**
 * Mistakes in one place: texts that stand there instead of `was`, each with its message, which begins with `place`. The message points at
 * the start of the text, or at the `^` in it, which is no part of it.
 */
export function brokenAt(
  was: string,
  place: string,
  mistakes: Readonly<Record<string, readonly [is: string, message: string]>>,
): BrokenConfiguration[] {
  return Object.entries(mistakes).map(([mistake, [marked, message]]) => {
    const pointed = sound.slice(0, sound.indexOf(was)) + marked.slice(0, Math.max(marked.indexOf('^'), 0))
    const [line, column] = [pointed.split('\n').length, pointed.length - pointed.lastIndexOf('\n')]
    return broken(mistake, was, marked.replace('^', ''), `${line}:${column}: ${place}${message}`)
  })
}

export function apply({ replace }: BrokenConfiguration): string {
  return replace.reduce((text, [was, is]) => {
    const at = text.indexOf(was)
    if (at < 0) throw new Error(`the sound configuration does not hold: ${was}`)
    return text.slice(0, at) + is + text.slice(at + was.length)
  }, sound)
}
