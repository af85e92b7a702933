/**
 * Imported before the program: loads its modules, tells the parent which thread libuv does its file work on, and waits for leave to begin.
 * So the parent can attach strace to exactly that thread, and its first call is the program's own. With UV_THREADPOOL_SIZE=1 that thread
 * makes all asynchronous calls, one after the other, in the same order each time.
 */
import crypto from 'node:crypto'
import { closeSync, readSync, writeSync } from 'node:fs'
import { readlink } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

// Staged entries have the same name in every run, so that strace can filter by path.
let drawn = 0
Object.assign(crypto, { randomBytes: (size: number) => Buffer.alloc(size, ++drawn) })
syncBuiltinESMExports()

const built = process.env['HOLDFAST_BUILT'] ?? ''
const command = process.argv[2] ?? ''
const own: Readonly<Record<string, readonly string[]>> = {
  sync: ['cli/output/sync-lines', 'agent/one-pass', 'agent/open-source'],
  rollback: ['cli/commands/rollback'],
  remove: ['cli/commands/remove', 'static-pods/host-path-users'],
  hold: ['cli/commands/hold'],
}
const modules = ['cli/main', ...(own[command] ?? ['cli/content/read-tree']), 'cli/output/logger', 'durable/index']
for (const module of modules.map((name) => `src/${name}.js`)) await import(pathToFileURL(join(built, module)).href)

// In the thread that opens it, this link is PID/task/TID (proc(5)).
const thread = (await readlink('/proc/thread-self')).split('/').pop() ?? ''
const [say, hear] = [3, 4]
writeSync(say, thread)
readSync(hear, Buffer.alloc(1))
closeSync(say)
closeSync(hear)
