import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { scratch } from '../durable/scratch.js'
import { executable } from '../project.js'

await t.test('a process that reads a secret leaves none in a core file', async (t) => {
  const child = spawn(process.execPath, [executable, 'write', join(scratch(t), 'file')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  child.stdin.write('half of a secret')
  const limit = (): string | undefined =>
    /Max core file size\s+(\S+)\s+(\S+)/
      .exec(readFileSync(`/proc/${child.pid}/limits`, 'utf8'))
      ?.slice(1)
      .join(' ')
  // Before it reads, so that there is no instant at which it holds a secret and could dump it.
  while (!readFileSync(`/proc/${child.pid}/maps`, 'utf8').includes('koffi')) await new Promise(setImmediate)
  while (limit() !== '1 1') await new Promise(setImmediate)
  child.stdin.end(' and the rest')
  t.same(await once(child, 'exit'), [0, null])
})
