// Own process: it counts the descriptors of its process.
import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, openSync, readdirSync } from 'node:fs'
import t from 'tap'
import { UrgentEvents } from '../../native/mounts.js'

/** What waits for the kernel waits on a thread, and keeps neither its process nor a descriptor once it is closed. */

const open = () => readdirSync('/proc/self/fd').length
const module = new URL('../../native/mounts.js', import.meta.url).href
const waiting = `import { openSync } from 'node:fs'
import { UrgentEvents } from ${JSON.stringify(module)}
const events = new UrgentEvents(openSync('/proc/self/mountinfo'))
void events.next()
`

await t.test('it ends when it is closed, whether or not a call waits; its descriptor is closed', async (t) => {
  const table = openSync('/proc/self/mountinfo', 'r')
  const before = open()
  const events = new UrgentEvents(table)
  const next = events.next()
  await t.rejects(events.next(), { message: 'one call waits already' })
  events.close()
  events.close()
  t.equal(await next, false)
  t.equal(await events.next(), false)
  new UrgentEvents(table).close()
  t.equal(open(), before)
  closeSync(table)
  t.throws(() => new UrgentEvents(-1), TypeError)
})

await t.test('a process that exits, or fails, ends at once', async (t) => {
  for (const [end, code] of [
    ['setTimeout(() => process.exit(7), 200)', 7],
    ['setTimeout(() => { throw new Error() }, 200)', 1],
  ] as const) {
    const { status, signal } = spawnSync(process.execPath, ['--input-type=module', '-e', waiting + end], {
      timeout: 30_000,
    })
    t.strictSame([status, signal], [code, null])
  }
})

const mayMount = spawnSync('unshare', ['--mount', 'true']).status === 0

await t.test(
  'a change of the mounts is an event, and nothing before it',
  { skip: !mayMount && 'needs root to mount' },
  async (t) => {
    // A call that waits for something else than a change answers while a program runs.
    const script = `import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
${waiting.replace('void events.next()', '')}
const run = promisify(execFile)
const said = []
const next = events.next().then((event) => said.push(event))
await run('true')
said.push('mounting')
await run('mount', ['-t', 'tmpfs', 'none', '/mnt'])
await next
events.close()
console.log(JSON.stringify(said))`
    const args = ['--mount', '--propagation', 'private', process.execPath, '--input-type=module', '-e', script]
    const out = execFileSync('unshare', args, { encoding: 'utf8', timeout: 30_000 })
    t.equal(out, '["mounting",true]\n')
  },
)
