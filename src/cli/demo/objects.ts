import type { KeyPair } from './certificate.js'

/* The demo's files, as a user would write them. The demo makes their content up on the spot; it is worth nothing. */

/** `rotation`: so that a reader sees which one is published. */
export function secretYaml({ certificate, key }: KeyPair, rotation: number): string {
  return `# An example. Edit it, or write another one over it: what is published follows.
apiVersion: v1
kind: Secret
metadata:
  name: serving-cert
  namespace: demo
type: kubernetes.io/tls
stringData:
  rotation: "${rotation}"
  tls.crt: |
${indent(certificate)}
  tls.key: |
${indent(key)}
`
}

export function configMapYaml(): string {
  return `apiVersion: v1
kind: ConfigMap
metadata:
  name: web
  namespace: demo
data:
  web.conf: |
    listen = 8443
    certificate = tls/tls.crt
`
}

export function configurationYaml(): string {
  return `apiVersion: holdfast.dev/v1alpha1
kind: AgentConfiguration
stateDirectory: ./state
source:
  namespace: demo
  files: { path: ./objects }
directories:
  - path: ./node/web
    contents:
      - secret: serving-cert
        into: tls
      - configMap: web
      - combine: server.pem
        from: [{ secret: serving-cert, key: tls.key }, { secret: serving-cert, key: tls.crt }]
    validate: [certificates]
server: { address: "127.0.0.1:0" }
`
}

function indent(text: string): string {
  return text.trimEnd().replaceAll(/^/gm, '    ')
}
