import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { publish } from '../../src/durable/publish/publish.js'
import { directoryPublication } from '../../src/durable/publish/replace.js'
import { intercepted, Killed } from './intercepted.js'
import { contents, kept, scratchWith } from './scratch.js'

const real = new NodeFileSystem()
const files = { a: 'new', b: 'new' }

await t.test('a killed repair whose drift has gone leaves nothing behind', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  await publish([directoryPublication(real, { target, files })])
  // Not synced yet: a power cut takes it away, as a person might.
  writeFileSync(join(target, 'drift'), 'theirs')
  const { fs } = intercepted((call) => {
    if (call === 'rename') throw new Killed('killed before the exchange')
  })
  fs.removeFile = fs.removeDirectory = () => Promise.reject(new Killed('killed'))
  await publish([directoryPublication(fs, { target, files: { a: 'newer' } })])
  t.same(kept(parent), ['lock', 'record', 'record', 'staging'])
  rmSync(join(target, 'drift'))
  t.match(
    await publish([directoryPublication(real, { target, files })]),
    [{ outcome: 'unchanged' }],
    'the very directory that was published is there',
  )
  t.same(contents(target), files)
  t.same(kept(parent), ['lock', 'record'])
  t.match(await publish([directoryPublication(real, { target, files })]), [{ outcome: 'unchanged' }])
})

await t.test(
  'leftovers that only another publication can clear up are cleared up, though the content is the same',
  async (t) => {
    const [parent, target] = scratchWith(t, 'certs')
    const second = { a: 'second' }
    const publishBy = (stopsBefore: 'commit' | 'removal' | 'exchange', content: Record<string, string>) => {
      let renames = 0
      const { fs } = intercepted((call) => {
        if (call === 'rename' && stopsBefore === 'exchange') throw new Killed('killed before the exchange')
        if (call === 'rename') renames += 1
        if (call === 'write' && renames > 0 && stopsBefore === 'commit') throw new Killed('killed before the mark')
      })
      const removeFile = fs.removeFile.bind(fs)
      fs.removeFile = (parent, name) =>
        /\.\d+$/.test(name) ? Promise.reject(new Killed('records stay')) : removeFile(parent, name)
      return publish([directoryPublication(fs, { target, files: content })])
    }
    await publishBy('commit', files)
    t.match(await publishBy('removal', second), [{ outcome: 'replaced' }])
    await publishBy('exchange', { a: 'third' })
    t.same(contents(target), second)
    t.equal(kept(parent).filter((kind) => kind === 'record').length, 3, kept(parent).join())
    t.match(await publish([directoryPublication(real, { target, files: second })]), [{ outcome: 'replaced' }])
    t.same(contents(target), second)
    t.same(kept(parent), ['lock', 'record'])
  },
)
