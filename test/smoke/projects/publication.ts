/** One publication by the package, as each project of test/package makes it. */
import { replaceDirectory, type ReplaceResult } from 'holdfast'

export async function publish(target: string): Promise<ReplaceResult['outcome']> {
  const { outcome } = await replaceDirectory(target, { files: { 'tls.crt': 'certificate', 'sub/tls.key': 'key' } })
  return outcome
}
