/** What other users make in a sticky directory under the names that holdfast uses there stops nobody, or is refused with the reason. */
import { chmodSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { FileSystem } from '../../../src/durable/file-system.js'
import { DurableCalls, readPublication, replaceDirectory, setHold } from '../../../src/durable/index.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { openOwn, Scope } from '../../../src/durable/path/scope.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { verifyDirectory } from '../../../src/index.js'
import { failing, failure, intercepted } from '../intercepted.js'
import { contents, scratchWith } from '../scratch.js'
import { needsRoot, strangerMakes, strangersKinds, strangersUid } from '../stranger.js'

const names = namesFor('certs')

for (const kind of strangersKinds) {
  await t.test(`another user's ${kind} under a record's name stops nobody`, needsRoot, async (t) => {
    const [parent, target] = scratchWith(t, 'certs')
    chmodSync(parent, 0o1777)
    await replaceDirectory(target, { files: { a: '1' } })
    await strangerMakes(t, parent, names.record(2), kind)
    await setHold(target, { reason: 'INC-7', since: 1, until: null })
    t.match(await readPublication(target), { hold: { reason: 'INC-7' } })
    await setHold(target, undefined)
    t.match(await replaceDirectory(target, { files: { a: '2' } }), { outcome: 'replaced' })
    t.match(await verifyDirectory(target), { intact: true })
    t.same(contents(target), { a: '2' })
  })

  await t.test(`another user's ${kind} in the place of a lock is refused`, needsRoot, async (t) => {
    const [parent, target] = scratchWith(t, 'certs')
    chmodSync(parent, 0o1777)
    const refused = { code: 'EPERM', reason: 'TargetUnfit', published: false }
    await strangerMakes(t, parent, names.lock, kind)
    await t.rejects(replaceDirectory(target, { files: { a: '1' } }), {
      ...refused,
      problem: `the lock ${join(parent, names.lock)} is not a regular file of root or of this user, but of user ${strangersUid}`,
      advice: /^remove it: .*; other users may make it again there: use a directory where only root may make files$/,
    })
    await strangerMakes(t, parent, 'web.lock', kind)
    const lock = new DurableCalls().lock(join(parent, 'web.lock'), 0, undefined, 'nothing was begun')
    await t.rejects(lock, { ...refused, state: 'nothing was begun', advice: /, such as \/run\/holdfast\/locks$/ })
  })
}

await t.test('what fails where the file is ours is an error; what goes meanwhile is asked for again', async (t) => {
  const [parent, path] = scratchWith(t, 'record')
  writeFileSync(path, '')
  const opened = async (fs: FileSystem, name = 'record') => {
    const scope = new Scope(fs)
    try {
      const { file } = await openOwn(scope, 'openFile', await scope.keep(fs.openPath(parent)), name)
      return file !== undefined
    } finally {
      await scope.closeAll()
    }
  }
  t.equal(await opened(new NodeFileSystem()), true)
  await t.rejects(opened(failing('openFile', 'EAGAIN', 'openat2').fs), { code: 'EAGAIN' })
  await t.rejects(opened(new NodeFileSystem(), 'nothing'), { code: 'ENOENT' })
  // A socket that is gone at each look, and back at each open.
  let opens = 0
  const { fs } = intercepted((call) => {
    if (call === 'openFile') opens += 1
    if (call === 'openFile' && opens < 3) throw failure('ENXIO', 'openat2')
    if (call === 'look') rmSync(path, { force: true })
    if (opens === 3) writeFileSync(path, '')
  })
  t.equal(await opened(fs), true)
})
