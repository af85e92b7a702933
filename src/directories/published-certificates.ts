import { readPublication, readPublishedFiles } from '../durable/index.js'
import { type CertificateBlock, certificateBlocks } from '../x509/certificates.js'
import type { CertificateDate } from './types.js'
import { certificateDate } from './validate.js'

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
