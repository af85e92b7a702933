import { createPrivateKey, X509Certificate } from 'node:crypto'

/**
 * Checks of PEM text before it goes to TLS, where the same fault would be an OpenSSL code without a place. Each
 * returns what is wrong, in words that quote nothing, or undefined.
 */

const CERTIFICATE = /-----BEGIN (?:TRUSTED )?CERTIFICATE-----[^-]*-----END (?:TRUSTED )?CERTIFICATE-----/g

export function certificateFault(pem: string): string | undefined {
  const blocks = pem.match(CERTIFICATE)
  if (!blocks) return 'holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)'
  const broken = blocks.findIndex((block) => parse(block) === undefined)
  return broken === -1 ? undefined : `certificate ${broken + 1} of ${blocks.length} cannot be parsed`
}

export function privateKeyFault(pem: string): string | undefined {
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(pem)) {
    return 'holds no private key in PEM form (-----BEGIN … PRIVATE KEY-----)'
  }
  if (/ENCRYPTED/.test(pem)) return 'the private key is encrypted; give it without a passphrase'
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

/** Not-after of the first certificate, which is the one that is presented. */
export function notAfter(certificatePem: string): Date | undefined {
  const leaf = firstCertificate(certificatePem)
  return leaf && new Date(leaf.validTo)
}

function firstCertificate(pem: string): X509Certificate | undefined {
  const block = pem.match(CERTIFICATE)?.[0]
  return block === undefined ? undefined : parse(block)
}

function parse(block: string): X509Certificate | undefined {
  try {
    return new X509Certificate(block)
  } catch {
    return undefined
  }
}
