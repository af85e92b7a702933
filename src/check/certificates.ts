import { type CertificateBlock, certificateBlocks } from '../x509/certificates.js'
import { publishedCertificates } from '../directories/validate.js'
import { codeOrMessage, ok, warn, type CheckResult } from './findings.js'

export interface Validity {
  /** Where it is, for people. */
  readonly name: string
  readonly from: Date
  readonly to: Date
}

/** Of each certificate in a PEM text; a block that does not parse is none. */
export function validitiesOf(name: string, pem: Uint8Array): Validity[] {
  return validitiesIn(name, certificateBlocks(pem))
}

function validitiesIn(name: string, blocks: readonly CertificateBlock[]): Validity[] {
  return blocks
    .map(({ dates }) => dates)
    .filter((dates) => dates !== undefined)
    .map(({ notBefore, notAfter }) => ({ name, from: notBefore, to: notAfter }))
}

/**
 * Compares the clock with the certificates: a certificate that is not valid yet comes from a clock that is ahead of this one, mostly a
 * right one. undefined where there are none.
 */
export function checkClock(check: string, validities: readonly Validity[], now: Date): CheckResult | undefined {
  const [first] = validities
  if (first === undefined) return undefined
  const [latest, earliest] = validities.reduce(
    ([begins, ends], one) => [one.from > begins.from ? one : begins, one.to < ends.to ? one : ends],
    [first, first],
  )
  if (latest.from > now) {
    return warn(
      check,
      `${latest.name} is not valid before ${shortDate(latest.from)}; the clock says ${shortDate(now)}`,
      "set the clock, and check that this node's time service is running",
    )
  }
  if (earliest.to <= now) {
    return warn(
      check,
      `${earliest.name} expired at ${shortDate(earliest.to)}; the clock says ${shortDate(now)}`,
      'renew the certificate, or set the clock',
    )
  }
  const count = validities.length === 1 ? 'one certificate' : `${validities.length} certificates`
  return ok(check, `${count}, valid now; the first to expire is ${earliest.name}, at ${shortDate(earliest.to)}`)
}

/** For a directory: the dates of the certificates published there. */
export async function checkPublished(target: string, now: Date): Promise<CheckResult | undefined> {
  try {
    const files = await publishedCertificates(target)
    const validities = files.flatMap(({ path, blocks }) => validitiesIn(path, blocks))
    return checkClock('certificates', validities, now)
  } catch (error) {
    return warn(
      'certificates',
      `could not read the published files: ${codeOrMessage(error)}`,
      'run holdfast verify with the same configuration',
    )
  }
}

function shortDate(date: Date): string {
  return date.toISOString().replace('.000Z', 'Z')
}
