/** Whether rendered files may be published, and how long their certificates are valid. Messages never hold content. */
import { objectName } from '../message-text.js'
import type { KubernetesObject, ObjectReference } from '../objects/types.js'
import {
  bundleProblem,
  type CertificateBlock,
  leafCertificate,
  matches,
  privateKey,
  certificateBlocks,
} from '../x509/certificates.js'
import type { DirectoryConfiguration, Validation } from '../config/types.js'
import type { DraftPart } from './draft.js'
import type { CertificateDate, ContentFinding } from './types.js'
import type { AdoptedFiles } from '../durable/types.js'
import { readPublication, readPublishedFiles } from '../durable/index.js'

interface RenderedBlocks {
  readonly path: string
  readonly content: Uint8Array
  /** The CERTIFICATE blocks of the content. */
  readonly blocks: readonly CertificateBlock[]
  /** Where it comes from, for people. */
  readonly origin: string
  /** The object that it comes from, where that is one. */
  readonly reference: ObjectReference | undefined
}

interface ValidationRule {
  /** Each Secret that the directory holds. */
  secret(object: KubernetesObject): ContentFinding[]
  /** Each file that is rendered from a current object: the kept files of a gone object are not checked again. */
  file(file: RenderedBlocks): ContentFinding[]
}

/** The rule behind each word of `validate`. */
export const validations: Readonly<Record<Extract<Validation, string>, ValidationRule>> = {
  certificates: { secret: checkSecret, file: ({ path, blocks, ...from }) => checkBlocks(path, blocks, from) },
}

/**
 * `validate: [certificates]` for one Secret: `tls.crt` and `tls.key`, by the names that they have in the object, must both be
 * there, parse and match. A Secret with neither is none of its business.
 */
function checkSecret(object: KubernetesObject): ContentFinding[] {
  const { reference } = object
  const certificateContent = object.data.get('tls.crt')
  const keyContent = object.data.get('tls.key')
  const certificate = certificateContent && leafCertificate(certificateContent)
  const key = keyContent && privateKey(keyContent)
  const problems: string[] = []
  if (certificateContent && !keyContent) problems.push('it has tls.crt, but no tls.key')
  if (keyContent && !certificateContent) problems.push('it has tls.key, but no tls.crt')
  if (typeof certificate === 'string') problems.push(`tls.crt ${certificate}`)
  if (typeof key === 'string') problems.push(`tls.key ${key}`)
  if (certificate !== undefined && key !== undefined && typeof certificate === 'object' && typeof key === 'object') {
    if (!matches(certificate, key)) problems.push('tls.key does not belong to the first certificate of tls.crt')
  }
  return problems.map((problem) => ({
    reason: 'CertificateInvalid',
    message: `${objectName(reference)}: ${problem}`,
    reference,
  }))
}

/** Faulty blocks of one file that are told: its author may have put in thousands. */
const mostTold = 10

/**
 * `validate: [certificates]` for one file: every CERTIFICATE block of it must parse. `origin` says where it comes from, `reference`
 * which object it comes from, where that is one.
 */
function checkBlocks(
  path: string,
  blocks: readonly CertificateBlock[],
  { origin, reference }: Pick<RenderedBlocks, 'origin' | 'reference'>,
  most = mostTold,
): ContentFinding[] {
  const faulty = [...blocks.entries()].filter(([, { problem }]) => problem !== undefined)
  return faulty.slice(0, most).map(([index, { line, problem }], told) => {
    const more = told + 1 === most && faulty.length > most ? ` (and ${faulty.length - most} more of this file)` : ''
    const message = `${path} (${origin}): certificate ${index + 1} of ${blocks.length}, at line ${line}: ${problem}${more}`
    return { reason: 'CertificateInvalid', message, ...(reference ? { reference } : {}) }
  })
}

/** Without `validate: [certificates]`, what it would refuse of a file is a warning: programs in Go do without it, or refuse the file. */
export function unaskedFindings({ path, blocks, origin }: RenderedBlocks): ContentFinding[] {
  return checkBlocks(path, blocks, { origin, reference: undefined }, 1).map(({ reason, message }) => ({
    reason,
    message: `${message}; holdfast publishes it so, and validate: [certificates] refuses it`,
  }))
}

/**
 * `validate: [bundle: KEY]` for the parts of all files: each that comes from this key must hold at least one certificate, and none that
 * does not parse. `isWhole`: all of the directory's objects are here, so that a key which none of them has is a mistake.
 */
export function checkBundles(
  directory: DirectoryConfiguration,
  parts: readonly DraftPart[],
  isWhole: boolean,
): ContentFinding[] {
  return directory.validate.flatMap((validation): ContentFinding[] => {
    if (typeof validation === 'string') return []
    const { bundle } = validation
    const own = parts.filter(({ key }) => key === bundle)
    if (own.length === 0 && isWhole) {
      const message = `no file of it comes from a key ${bundle}, which validate asks for as a bundle`
      return [{ reason: 'CertificateInvalid', message }]
    }
    return own.flatMap(({ reference, bytes }): ContentFinding[] => {
      const problem = bundleProblem(bytes)
      if (problem === undefined) return []
      const message = `${objectName(reference)}: ${bundle} ${problem}; validate asks for a bundle of certificates in it`
      return [{ reason: 'CertificateInvalid', message, reference }]
    })
  })
}

/** When the certificates of a file start and cease to be valid; undefined where none of its blocks parses. */
export function certificateDate(path: string, blocks: readonly CertificateBlock[]): CertificateDate | undefined {
  let notBefore = -Infinity
  let notAfter = Infinity
  for (const { dates } of blocks) {
    if (dates === undefined) continue
    notBefore = Math.max(notBefore, dates.notBefore.valueOf())
    notAfter = Math.min(notAfter, dates.notAfter.valueOf())
  }
  if (!Number.isFinite(notBefore) || !Number.isFinite(notAfter)) return undefined
  return { file: path, notBefore: new Date(notBefore), notAfter: new Date(notAfter) }
}

/**
 * Compares the certificates with the clock. These are warnings, for every value of `validate`: a board that boots without a battery
 * for its clock must still get the certificate that lets it talk to a time server.
 */
export function dateFindings(certificates: readonly CertificateDate[], now: Date): ContentFinding[] {
  return certificates.flatMap(({ file, notBefore, notAfter }): ContentFinding[] => {
    if (notAfter <= now) {
      return [
        {
          reason: 'CertificateExpired',
          message: `${file}: a certificate expired at ${notAfter.toISOString()}`,
        },
      ]
    }
    if (notBefore > now) {
      const message = `${file}: a certificate is not valid before ${notBefore.toISOString()}: is this node's clock right?`
      return [{ reason: 'CertificateExpired', message }]
    }
    return []
  })
}

/**
 * The first private key among these files that does not belong to the certificate beside it, NAME.key and NAME.crt; undefined: there is
 * none. What does not parse is no pair. Never holds content.
 */
export async function keyPairProblemAmong({ paths, read }: AdoptedFiles): Promise<string | undefined> {
  const known = new Set(paths)
  for (const path of paths) {
    const beside = path.replace(/\.key$/, '.crt')
    if (beside === path || !known.has(beside)) continue
    const [certificate, key] = [leafCertificate(await read(beside)), privateKey(await read(path))]
    if (typeof certificate === 'string' || typeof key === 'string' || matches(certificate, key)) continue
    return `${path} does not belong to the first certificate of ${beside}`
  }
  return undefined
}

interface PublishedBlocks {
  /** Of the file, below the target. */
  readonly path: string
  readonly blocks: readonly CertificateBlock[]
}

/** The CERTIFICATE blocks of each published file that comes from an object; a file that cannot be read has none. */
export async function publishedCertificates(target: string): Promise<PublishedBlocks[]> {
  const publication = await readPublication(target)
  const paths = publication?.objects.flatMap(({ paths, combined = [] }) => [...paths, ...combined]) ?? []
  const found: PublishedBlocks[] = []
  for (const path of new Set(paths)) {
    // One file after the other: memory holds the content of one alone.
    const files = await readPublishedFiles(target, [path]).catch(() => ({}))
    for (const { content } of Object.values(files)) found.push({ path, blocks: certificateBlocks(content) })
  }
  return found
}

/** When the certificates of each published file start and cease to be valid. */
export async function publishedCertificateDates(target: string): Promise<CertificateDate[]> {
  const files = await publishedCertificates(target)
  return files.flatMap(({ path, blocks }) => certificateDate(path, blocks) ?? [])
}
