/** Of several reasons not to publish, which one is told. On the model disk. */
import t from 'tap'
import { setHold } from '../../src/durable/hold.js'
import { publish } from '../../src/durable/publish.js'
import { directoryPublication } from '../../src/durable/replace.js'
import type { PublicationOptions } from '../../src/durable/types.js'
import { find } from '../crash/model/content.js'
import { ModelDisk } from '../crash/model/model-disk.js'
import { ModelProcess } from '../crash/model/model-process.js'
import { failure } from './intercepted.js'

const target = '/t'
const pin = { reason: 'the new one is bad', until: 'released' } as const

async function run(process: ModelProcess, a: string, options: PublicationOptions = {}): Promise<unknown> {
  const [outcome] = await publish([directoryPublication(process, { target, files: { a }, ...options })])
  return outcome && 'error' in outcome ? outcome.error.reason : outcome?.outcome
}

await t.test('publisher, form, whoever is to confirm, hold, pin: in this order', async (t) => {
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

await t.test('whoever is to confirm is asked also where nothing is to be done', async (t) => {
  const disk = new ModelDisk()
  const asked: unknown[] = []
  const options: PublicationOptions = { confirm: ({ current }) => asked.push(current?.sequence) }
  t.equal(await run(new ModelProcess(disk), '1', options), 'created')
  t.equal(await run(new ModelProcess(disk), '1', options), 'unchanged')
  t.strictSame(asked, [undefined, 1])
})
