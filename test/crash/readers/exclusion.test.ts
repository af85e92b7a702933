/*
 * Two processes at one target. The first is held by strace in the midst of its exchange, for as long as a second wants to.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { kept, scratch } from '../../durable/scratch.js'
import { environment, executable } from '../syscalls/distribution.js'

t.setTimeout(60_000)

const hasStrace = spawnSync('strace', ['-V']).status === 0
/** Milliseconds for which the first process holds the lock; the second one takes a fraction of that. */
const held = 4000

interface Ended {
  code: number | null
  stdout: string
  stderr: string
}

async function run(command: readonly string[]): Promise<Ended> {
  const [name = '', ...args] = command
  const child = spawn(name, args, { env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
  const text = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text.stdout += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (text.stderr += chunk))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, ...text }
}

const forms = ['replace', 'write'] as const
for (const form of forms) {
  await t.test(
    `${form}: 75 while another holds the lock`,
    { skip: hasStrace ? false : 'needs strace' },
    async (t) => {
      const root = scratch(t)
      const parent = join(root, 'parent')
      const target = join(parent, 'target')
      mkdirSync(parent)
      const sources = ['first', 'second', 'third'].map((name) => {
        mkdirSync(join(root, name))
        writeFileSync(join(root, name, 'file'), name)
        return join(root, name)
      })
      const command = (source: string, ...more: string[]): string[] => {
        const holdfast = [process.execPath, executable(root)]
        return form === 'replace'
          ? [...holdfast, 'replace', target, '--from', source, ...more]
          : [
              'sh',
              '-c',
              'input=$1; shift; exec "$@" < "$input/file"',
              'sh',
              source,
              ...holdfast,
              'write',
              target,
              ...more,
            ]
      }
      const read = (): string => readFileSync(form === 'replace' ? join(target, 'file') : target, 'utf8')
      const [first = '', second = '', third = ''] = sources
      t.equal((await run(command(first))).code, 0)
      const before = lstatSync(target).ino

      const slowly = ['-e', 'trace=renameat2', '-e', `inject=renameat2:delay_enter=${held * 1000}`]
      const holder = run(['strace', '-f', '-qq', '-o', '/dev/null', ...slowly, ...command(second)])
      while (!kept(parent).includes('staging')) await sleep(5)
      const refused = await run([...command(third), '-o', 'json'])
      t.equal(refused.code, 75)
      const { error } = JSON.parse(refused.stdout) as { error: { reason: string; published: boolean } }
      t.match(error, { reason: 'Busy', published: false, code: 'EAGAIN', syscall: 'flock' })
      t.equal(lstatSync(target).ino, before, 'the refused one has changed nothing')
      t.ok(kept(parent).includes('staging'), 'nor removed what the other has staged')

      const waits = await run([...command(third), '--lock-timeout', '30s'])
      t.equal((await holder).code, 0, 'the one that held the lock has published')
      t.equal(waits.code, 0, waits.stderr)
      t.equal(read(), 'third', 'and the one that waited came after it')
      t.same(kept(parent), ['lock', 'record'])
    },
  )
}
