/** Publishes what each line of standard input asks for, and says so: for tests that start it where it may look at all processes. */
import { createInterface } from 'node:readline'
import { replaceDirectory } from '../../src/durable/index.js'

for await (const line of createInterface(process.stdin)) {
  const { target, files } = JSON.parse(line) as { target: string; files: Record<string, string> }
  const { outcome } = await replaceDirectory(target, { files, retireTimeout: 3_600_000 })
  console.log(outcome)
}
