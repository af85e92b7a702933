/** A new record of published content: its fields, and its end after each failure and interruption. */
import t from 'tap'
import { setHold } from '../../src/durable/operator/hold.js'
import { find } from '../crash/model/content.js'
import { ModelError } from '../crash/model/model-disk.js'
import { makeEntry } from '../crash/model/scenario.js'
import { names, published, refusal, target } from './model-target.js'

const hold = { reason: 'INC-7', since: 1, until: null }

await t.test('a lock alone, or a torn record, says of no publication; a record without a lock does', async (t) => {
  const { disk, fs, parent, beside, isHeld } = await published()
  disk.link(parent, [[names.lock, undefined]], 'by hand')
  t.equal(await refusal(setHold(fs, target, hold, {})), undefined)
  t.ok(await isHeld())
  for (const name of beside()) if (name !== names.lock) disk.link(parent, [[name, undefined]], 'by hand')
  const nothing = {
    code: 'ENOENT',
    reason: 'TargetUnfit',
    message: /^holdfast has published nothing at \/etc\/certs: /,
  }
  t.match(await refusal(setHold(fs, target, hold, {})), nothing)
  makeEntry(disk, `/etc/${names.record(4)}`, 'file', 0o600, 'torn')
  t.match(await refusal(setHold(fs, target, hold, {})), nothing)
  t.strictSame(beside(), [names.record(4), names.lock], 'and the torn one is left to a publication')
})

await t.test(
  'the new record is its owner’s alone, and durable before the older one goes, on a file system that is up',
  async (t) => {
    const { disk, fs, calls } = await published()
    t.equal(await refusal(setHold(fs, target, hold, {})), undefined)
    t.equal(find(disk, `/etc/${names.record(2)}`)?.now.attributes.mode, 0o600)
    const probe = calls.findLast((call) => call.startsWith('createFile'))?.slice('createFile '.length) ?? ''
    t.ok(names.stagingOf(probe))
    t.strictSame(
      calls.filter((call) => /^(create|write|sync|remove)/.test(call)),
      [
        `createFile ${names.record(2)}`,
        `write /etc/${names.record(2)}`,
        `sync /etc/${names.record(2)} /etc /`,
        `createFile ${probe}`,
        `removeFile ${probe}`,
        `removeFile ${names.record(1)}`,
      ],
    )
  },
)

await t.test('an older record that does not go is no failure: the newer one stands, and the log says so', async (t) => {
  const { fs, beside, isHeld } = await published()
  fs.before = (call, name) => {
    if (call === 'removeFile' && name === names.record(1)) throw new ModelError('EIO', 'unlinkat', name)
  }
  const lines: string[] = []
  const hear = (_: object, message: string): void => void lines.push(message)
  const log = { debug: hear, info: hear, warn: hear, error: hear }
  t.equal(await refusal(setHold(fs, target, hold, { log })), undefined)
  t.strictSame(lines, ['could not remove the older record; the next run retries'])
  t.ok(beside().includes(names.record(1)))
  t.ok(await isHeld())
})

await t.test('setHold takes a durable record back durably, and only removes any other', async (t) => {
  for (const isLate of [false, true]) {
    const { disk, fs, calls, isHeld } = await published()
    const move = (from: string, to: string): void =>
      disk.link(
        find(disk, '/')?.number ?? 0,
        [
          [from, undefined],
          [to, find(disk, `/${from}`)?.number],
        ],
        'rename',
      )
    fs.before = (call, name) => {
      calls.push(call)
      const isProbed = call === 'removeFile' && names.stagingOf(name) !== undefined
      if (isLate && isProbed) move('etc', 'moved')
      if (!isLate && call === 'sync') throw new ModelError('EIO', 'fsync', name)
    }
    const refused = await refusal(setHold(fs, target, hold, {}))
    t.match(refused, { code: isLate ? 'ESTALE' : 'EIO', published: false })
    const changes = calls.filter((call) => /^(create|sync|remove)/.test(call))
    const behind = changes.slice(changes.indexOf('sync') + 1)
    t.strictSame(behind, isLate ? ['createFile', 'removeFile', 'removeFile', 'sync'] : ['removeFile'])
    if (isLate) move('moved', 'etc')
    fs.before = undefined
    t.notOk(await isHeld())
  }
})
