/** Examines a mounted file system as another boot finds it, once: argument and answer are JSON. In a new mount namespace. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { examineState } from '../power/examine.js'
import { bindOver } from '../power/loop-mount.js'
import type { Expected } from '../power/marks.js'

const { mountPoint, expected, number } = JSON.parse(process.argv[2] ?? '') as {
  mountPoint: string
  expected: readonly Expected[]
  number: number
}
const boot = join(mkdtempSync(join(tmpdir(), 'holdfast-boot-')), 'boot_id')
writeFileSync(boot, `${randomUUID()}\n`)
bindOver(boot, '/proc/sys/kernel/random/boot_id')
console.log(JSON.stringify({ problem: await examineState(mountPoint, expected, number) }))
