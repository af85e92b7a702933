import { createPrivateKey, X509Certificate } from 'node:crypto'
import { pemBlocks, type PemBlock } from '../../pem.js'

/**
 * Checks of PEM text before it goes to TLS, where the same error would be an OpenSSL code without a place. Each
 * returns the problem, in words that quote nothing, or undefined.
 */

export function certificateProblem(pem: string): string | undefined {
  const blocks = certificatesOf(pem)
  if (blocks.length === 0) return 'holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)'
  const broken = blocks.findIndex((block) => parse(block) === undefined)
  const problem = blocks[broken]?.problem
  if (broken === -1) return undefined
  return `certificate ${broken + 1} of ${blocks.length} cannot be parsed${problem === undefined ? '' : `: ${problem}`}`
}

export function privateKeyProblem(pem: string): string | undefined {
  const key = pemBlocks(Buffer.from(pem)).find(({ label }) => /^(?:.* )?PRIVATE KEY$/.test(label))
  if (key === undefined) return 'holds no private key in PEM form (-----BEGIN … PRIVATE KEY-----)'
  if (key.encrypted || key.label === 'ENCRYPTED PRIVATE KEY') {
    return 'the private key is encrypted; give it without a passphrase'
  }
  try {
    createPrivateKey(pem)
    return undefined
  } catch {
    return 'the private key cannot be parsed'
  }
}

/** Both must have passed the checks above. */
export function keyMatches(certificatePem: string, keyPem: string): boolean {
  const leaf = firstCertificate(certificatePem)
  return leaf?.checkPrivateKey(createPrivateKey(keyPem)) ?? false
}

/** Not-after of the first certificate, which is the leaf that the client presents. */
export function notAfter(certificatePem: string): Date | undefined {
  const leaf = firstCertificate(certificatePem)
  return leaf && new Date(leaf.validTo)
}

function firstCertificate(pem: string): X509Certificate | undefined {
  const [block] = certificatesOf(pem)
  return block && parse(block)
}

function certificatesOf(pem: string): PemBlock[] {
  return pemBlocks(Buffer.from(pem)).filter(({ label }) => label === 'CERTIFICATE' || label === 'TRUSTED CERTIFICATE')
}

function parse({ der, encrypted }: PemBlock): X509Certificate | undefined {
  try {
    return der && !encrypted ? new X509Certificate(der) : undefined
  } catch {
    return undefined
  }
}
