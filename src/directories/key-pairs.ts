import type { AdoptedFiles } from '../durable/types.js'
import { leafCertificate, matches, privateKey } from './certificates.js'

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
