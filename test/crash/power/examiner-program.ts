/**
 * Examines recordings, named one per line of standard input as JSON, and answers each with a line: a new process, in a new mount namespace,
 * with another boot ID. So it reads the records of the runs under test as after a power cut.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { examine, type ExamineOptions } from './examine.js'
import { bindOver } from './loop-mount.js'
import type { Recording } from './recording.js'

const [directory = ''] = process.argv.slice(2)
mkdirSync(directory, { recursive: true })
const boot = join(directory, 'boot_id')
writeFileSync(boot, `${randomUUID()}\n`)
bindOver(boot, '/proc/sys/kernel/random/boot_id')

for await (const line of createInterface({ input: process.stdin })) {
  const { recording, ...options } = JSON.parse(line) as { recording: Recording } & ExamineOptions
  const examination = await examine(recording, { ...options, directory })
  console.log(JSON.stringify(examination))
}
