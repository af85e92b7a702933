/** Whether writes at a path survive a power cut for certain: by its present or future file system. */
import { join } from 'node:path'
import t from 'tap'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { unprovenAt } from '../../../src/durable/path/resolve.js'
import { intercepted } from '../intercepted.js'
import { scratch } from '../scratch.js'

await t.test(
  'unprovenAt answers an unproven file system, or refuses it with requireProven, and leaves no descriptor open',
  async (t) => {
    const path = join(scratch(t), 'none/deep/certs')
    const on = (proven: boolean) => {
      const mount = { id: 1, type: 'tmpfs', device: '0:1', root: '/', mountPoint: '/', proven }
      return intercepted(() => undefined, Object.assign(new NodeFileSystem(), { mount: () => Promise.resolve(mount) }))
    }
    const [proven, unproven] = [on(true), on(false)]
    for (const requireProven of [undefined, false, true])
      t.strictSame(await unprovenAt(proven.fs, path, requireProven), {})
    for (const requireProven of [undefined, false]) {
      t.strictSame(await unprovenAt(unproven.fs, path, requireProven), { unproven: true })
    }
    await t.rejects(unprovenAt(unproven.fs, path, true), {
      code: 'ENOTSUP',
      reason: 'TargetUnfit',
      published: false,
      path,
      problem: /is on tmpfs, where durability is not proven/,
      advice: 'choose another file system, or leave out --require-proven',
    })
    for (const { open } of [proven, unproven]) t.equal(open.size, 0)
  },
)
