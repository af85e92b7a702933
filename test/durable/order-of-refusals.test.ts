/** The order of refusals, where a publication has several reasons. On the model disk. */
import t from 'tap'
import { setHold } from '../../src/durable/operator/hold.js'
import { publish } from '../../src/durable/publish/publish.js'
import { directoryPublication, filePublication } from '../../src/durable/publish/replace.js'
import type { PublicationOptions } from '../../src/durable/types.js'
import { find } from '../crash/model/content.js'
import { ModelDisk } from '../crash/model/model-disk.js'
import { ModelProcess } from '../crash/model/model-process.js'
import { makeEntry } from '../crash/model/scenario.js'
import { failure, Killed } from './intercepted.js'

const target = '/t'
const pin = { reason: 'the new one is bad', until: 'released' } as const

async function run(process: ModelProcess, a: string, options: PublicationOptions = {}): Promise<unknown> {
  const [outcome] = await publish([directoryPublication(process, { target, files: { a }, ...options })])
  return outcome && 'error' in outcome ? outcome.error.reason : outcome?.outcome
}

await t.test('publish checks publisher, form, confirm, hold and pin in this order', async (t) => {
  const disk = new ModelDisk()
  await run(new ModelProcess(disk), '1', { publisher: 'agent', pin })
  await setHold(new ModelProcess(disk), target, { reason: 'change window', since: 0, until: null }, {})
  const asked: string[] = []
  const attempt = (options: PublicationOptions) => {
    const confirm = () => {
      asked.push('confirm')
      throw failure('EPERM', 'of the caller')
    }
    return run(new ModelProcess(disk), '2', { publisher: 'install', confirm, supersedes: () => false, ...options })
  }
  // It is empty, so that only its record tells in which form it was published.
  const directory = find(disk, target)?.number ?? 0
  disk.link(directory, [['a', undefined]], 'somebody removes the file')
  t.equal(await attempt({ publish: 'symlink' }), 'TargetForeign')
  t.equal(await attempt({ publish: 'symlink', publisher: 'agent' }), 'TargetUnfit')
  t.strictSame(asked, [])
  t.equal(await attempt({ publisher: 'agent' }), 'PublishFailed')
  t.strictSame(asked, ['confirm'])
  t.equal(await attempt({ publisher: 'agent', confirm() {} }), 'Held')
  await setHold(new ModelProcess(disk), target, undefined, {})
  t.equal(await attempt({ publisher: 'agent', confirm() {} }), 'replaced')
})

await t.test(
  'a pinned target gets nothing else, and its own content once more where that may not be durable',
  async (t) => {
    const disk = new ModelDisk()
    const killed = new ModelProcess(disk)
    let syncs = 0
    killed.before = (call) => {
      if (call === 'sync') syncs += 1
      if (syncs > 1) throw new Killed()
    }
    await run(killed, '1', { pin })
    const attempt = (a: string) => run(new ModelProcess(disk), a, { supersedes: () => false })
    t.equal(await attempt('2'), 'RolledBack')
    t.equal(await attempt('1'), 'replaced')
    t.equal(await attempt('2'), 'RolledBack')
    t.equal(await attempt('1'), 'unchanged')
    t.equal(await run(new ModelProcess(disk), '2', { supersedes: () => false, held: 'release' }), 'replaced')
  },
)

await t.test("publish names the pin before another program's files", async (t) => {
  const disk = new ModelDisk()
  const killed = new ModelProcess(disk)
  let isDead = false
  killed.before = (call) => {
    isDead ||= call === 'rename'
    if (isDead) throw new Killed()
  }
  await run(killed, '1', { pin })
  makeEntry(disk, target, 'directory', 0o755, '')
  makeEntry(disk, `${target}/theirs`, 'file', 0o644, 'precious')
  const attempt = (options: PublicationOptions) =>
    run(new ModelProcess(disk), '2', { foreign: 'same-names', supersedes: () => false, ...options })
  t.equal(await attempt({}), 'RolledBack')
  t.equal(await attempt({ held: 'release' }), 'TargetForeign')
})

await t.test('publish reports unreadable content before an unfit place', async (t) => {
  const process = new ModelProcess(new ModelDisk())
  let looks = 0
  process.before = (call) => {
    if (call !== 'openPath') return
    looks += 1
    throw failure('EIO', 'openat2')
  }
  const publication = () => directoryPublication(process, { target, files: { a: { path: '/nothing is here' } } })
  t.match(await publish([publication()]), [{ error: { code: 'ENOENT' } }])
  t.equal(looks, 0, 'and that place is not looked at')
  const previewed = publication()
  await t.rejects(previewed.preview(), { code: 'ENOENT' })
  await previewed.close()
})

for (const form of ['exchange', 'symlink', 'file'] as const) {
  await t.test(
    `publish refuses an entry that comes during the wait for the lock like an earlier one (${form})`,
    async (t) => {
      for (const [type, code] of [
        ['symlink', 'ELOOP'],
        [form === 'file' ? 'directory' : 'file', form === 'file' ? 'EISDIR' : 'ENOTDIR'],
      ] as const) {
        const disk = new ModelDisk()
        const process = new ModelProcess(disk)
        const calls: string[] = []
        process.before = (call) => {
          calls.push(call)
          if (call === 'openLock') makeEntry(disk, target, type, 0o755, '/etc')
        }
        const publication =
          form === 'file'
            ? filePublication(process, target, '1', {})
            : directoryPublication(process, { target, files: { a: '1' }, publish: form })
        t.match(await publish([publication]), [{ error: { code, reason: 'TargetUnfit', published: false } }])
        t.equal(find(disk, target)?.type, type)
        t.notOk(calls.includes('createFile') || calls.includes('rename'), 'nothing was staged')
      }
    },
  )
}

await t.test('publish calls confirm also where the target needs no publication', async (t) => {
  const disk = new ModelDisk()
  const asked: unknown[] = []
  const options: PublicationOptions = { confirm: ({ current }) => asked.push(current?.sequence) }
  t.equal(await run(new ModelProcess(disk), '1', options), 'created')
  t.equal(await run(new ModelProcess(disk), '1', options), 'unchanged')
  t.strictSame(asked, [undefined, 1])
})
