import { hash, X509Certificate } from 'node:crypto'
import {
  certificateBlocks,
  certificateProblem,
  keyMatches,
  keyPairProblem,
  leafCertificate,
  notAfter,
  pemProblem,
  privateKey,
  privateKeyProblem,
} from '../../../src/x509/certificates.js'
import { pemBlocks, type PemBlock } from '../../../src/x509/pem.js'
import { demand, type Target } from '../target.js'

export const pem: Target<PemBlock[]> = {
  name: 'pem',
  files: ['pem', 'certificates', 'der', 'read-certificate', 'read-extensions', 'read-private-key'].map(
    (name) => `x509/${name}.js`,
  ),
  longest: 65_536,
  words: [
    '-----BEGIN ',
    '-----END ',
    '-----',
    'CERTIFICATE',
    'PRIVATE KEY',
    'EC PRIVATE KEY',
    'ENCRYPTED PRIVATE KEY',
    'TRUSTED ',
    '\n',
    '\r\n',
    '=',
    '==',
    'Proc-Type: 4,ENCRYPTED\n\n',
    'DEK-Info: AES,0\n',
    '\xef\xbb\xbf',
    '\xc2\xa0',
  ],
  read(input) {
    // None of these may throw, whatever the bytes are.
    const blocks = pemBlocks(input)
    const problem = pemProblem(input)
    const leaf = leafCertificate(input)
    privateKey(input)
    const pair = keyPairProblem(input)
    const text = input.toString()
    const isTrusted = certificateProblem(text) === undefined
    if (isTrusted) notAfter(text)
    if (isTrusted && privateKeyProblem(text) === undefined) keyMatches(text, text)
    demand(pair !== undefined || problem === undefined, 'a pair of a certificate and its key is sound PEM')
    for (const one of [problem, leaf, pair])
      demand(typeof one !== 'string' || one.length < 300, 'a problem is a short sentence')
    compareWithNode(input, problem)
    return problem === undefined ? blocks : undefined
  },
  go: {
    as: 'pem',
    contradiction: (_, ours, { error, value }) => {
      if (ours === undefined || error !== undefined) return error
      const own = ours.map(({ label, der }) => `${label} ${hash('sha256', der ?? '')}`)
      return String(own) === String(value) ? undefined : `the blocks are ${String(own)}, and to Go ${String(value)}`
    },
  },
}

/** Sound PEM, of which the first block is a certificate, is that certificate to Node. */
function compareWithNode(input: Buffer, problem: string | undefined): void {
  const [first] = certificateBlocks(input)
  if (problem !== undefined || first?.certificate === undefined || pemBlocks(input)[0]?.label !== 'CERTIFICATE') return
  let node: X509Certificate
  try {
    node = new X509Certificate(input)
  } catch (error) {
    demand(false, `holdfast takes it, and Node says: ${(error as Error).message}`)
    return
  }
  demand(node.raw.equals(first.certificate.der), 'Node reads another certificate')
}
