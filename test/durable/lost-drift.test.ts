import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { publish } from '../../src/durable/publish.js'
import { directoryPublication } from '../../src/durable/replace.js'
import { intercepted, Killed } from './intercepted.js'
import { contents, kept, scratch } from './scratch.js'

const real = new NodeFileSystem()
const files = { a: 'new', b: 'new' }

await t.test('a repair of drift that was killed, and the drift is gone: nothing is left over', async (t) => {
  const parent = scratch(t)
  const target = join(parent, 'certs')
  await publish([directoryPublication(real, { target, files })])
  // Not synced yet: a power cut takes it away, as somebody's hand would.
  writeFileSync(join(target, 'drift'), 'theirs')
  const { fs } = intercepted((call) => {
    if (call === 'rename') throw new Killed('killed before the exchange')
  })
  fs.removeFile = fs.removeDirectory = () => Promise.reject(new Killed('killed'))
  await publish([directoryPublication(fs, { target, files: { a: 'newer' } })])
  t.same(kept(parent), ['lock', 'record', 'record', 'staging'])
  rmSync(join(target, 'drift'))
  t.match(await publish([directoryPublication(real, { target, files })]), [{ outcome: 'replaced' }])
  t.same(contents(target), files)
  t.same(kept(parent), ['lock', 'record'])
  t.match(await publish([directoryPublication(real, { target, files })]), [{ outcome: 'unchanged' }])
})
