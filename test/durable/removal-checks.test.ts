/** The checks before a removal, in their order, and its end after each failure and interruption. */
import t from 'tap'
import { setHold } from '../../src/durable/operator/hold.js'
import { readPublication } from '../../src/durable/look/inspect.js'
import { removePublished } from '../../src/durable/remove/removal.js'
import { ModelError } from '../crash/model/model-disk.js'
import { ModelProcess } from '../crash/model/model-process.js'
import { Killed } from './intercepted.js'
import { names, published, refusal, target } from './model-target.js'

const hold = { reason: 'INC-7', since: 1, until: null }

const changes = /^(create|write|sync|rename|remove)/

await t.test('a removal checks the hold first, then the publisher, then confirm', async (t) => {
  const { fs } = await published(ModelProcess, { publisher: 'install' })
  await setHold(fs, target, hold, {})
  let asked = 0
  const confirm = (): void => {
    asked += 1
  }
  t.match(await refusal(removePublished(fs, target, { confirm })), { reason: 'Held', published: false })
  const refused = await refusal(removePublished(fs, target, { confirm, release: true }))
  t.match(refused, { code: 'EPERM', message: /^holdfast install published \/etc\/certs; / })
  t.equal(asked, 0)
})

await t.test('what goes back to its place is durable there before the record that let it go is removed', async (t) => {
  const { fs, calls, beside } = await published()
  const before = beside()
  let looks = 0
  const usedBy = (): Promise<string | undefined> => Promise.resolve(++looks === 2 ? 'a manifest' : undefined)
  t.match(await refusal(removePublished(fs, target, { usedBy })), { reason: 'InUse' })
  const made = calls.filter((call) => changes.test(call))
  const behind = ['sync /etc', `removeFile ${names.record(2)}`, 'sync /etc']
  t.strictSame(made.slice(made.indexOf('rename certs') + 1), behind)
  t.strictSame(beside(), before)
})

await t.test('what cannot be taken back does not hide why it was to be, with a log or without', async (t) => {
  for (const isLogged of [true, false]) {
    const { fs } = await published()
    fs.before = (call, name) => {
      if (call === 'removeFile' && name === names.record(2)) throw new ModelError('EIO', 'unlinkat', name)
    }
    const lines: string[] = []
    const hear = (_: object, message: string): void => void lines.push(message)
    const log = { debug: hear, info: hear, warn: hear, error: hear }
    let looks = 0
    const usedBy = (): Promise<string | undefined> => Promise.resolve(++looks === 2 ? 'a manifest' : undefined)
    const error = await refusal(removePublished(fs, target, { usedBy, ...(isLogged && { log }) }))
    t.match(error, { reason: 'InUse', published: false, message: /^\/etc\/certs is in use: a manifest; / })
    t.strictSame(lines.join(), isLogged ? 'could not remove the new record; the next run retries' : '')
  }
})

await t.test('a removal that stopped before its rename has taken nothing: setHold holds the target', async (t) => {
  for (const isGone of [false, true]) {
    const { disk, fs } = await published()
    let isDead = false
    fs.before = (call) => {
      isDead ||= call === 'rename' && !isGone
      if (isDead) throw new Killed()
      isDead = call === 'rename'
    }
    await refusal(removePublished(fs, target, {}))
    const next = new ModelProcess(disk)
    t.match(await readPublication(next, target), { removing: true })
    const removed = {
      code: 'ENOENT',
      message: /^\/etc\/certs was removed, and what is left of it is only to be cleared up; /,
    }
    const refused = await refusal(setHold(next, target, hold, {}))
    if (isGone) t.match(refused, removed)
    else t.equal(refused, undefined)
    t.strictSame((await readPublication(next, target))?.hold, isGone ? undefined : hold)
  }
})

await t.test('a removal that fails says that nothing was changed, and leaves nothing', async (t) => {
  const { fs, beside } = await published()
  const before = beside()
  fs.before = (call, name) => {
    if (call === 'rename') throw new ModelError('EIO', 'renameat2', name)
  }
  t.match(await refusal(removePublished(fs, target, {})), { code: 'EIO', published: false })
  t.strictSame(beside(), before)
})
