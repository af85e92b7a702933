/**
 * A program that publishes to one target again and again, and says so: `WRITER TARGET COUNT [FILES]`. Each version's files all hold the
 * version's number, padded, so that a reader recognizes a mixture, and a part. Ends with a line of totals; a failure other than a lock that
 * another process holds ends it with 1.
 */
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type * as Durable from '../../../src/durable/index.js'

const [target = '', count = '0', kind = 'directory'] = process.argv.slice(2)
const built = pathToFileURL(join(process.env['HOLDFAST_BUILT'] ?? '', 'src/durable/index.js')).href
const { replaceDirectory, replaceFile } = (await import(built)) as typeof Durable

/** Long enough for more than one page. */
const padding = 'x'.repeat(6000)
const content = (version: string): string => `${version} ${padding}`

let busy = 0
let published = 0
for (let round = 1; round <= Number(count); round++) {
  // The process's own number, too: two writers never write the same.
  const text = content(`${process.pid}-${round}`)
  const files = { 'tls.crt': text, 'tls.key': text, 'sub/ca.crt': text, [`only-${round % 2}`]: text }
  try {
    if (kind === 'file') await replaceFile(target, text)
    else await replaceDirectory(target, { files, lockTimeout: kind === 'patient' ? 60_000 : 0 })
    published++
  } catch (error) {
    const { code, syscall, message } = error as { code?: string; syscall?: string; message: string }
    if (code === 'EAGAIN' && syscall === 'flock') busy++
    else {
      process.stderr.write(`${basename(target)}: ${message}\n`)
      process.exitCode = 1
      break
    }
  }
}
process.stdout.write(JSON.stringify({ published, busy }))
