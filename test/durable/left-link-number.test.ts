/** Who replaces a link that was left while something is published there may get its inode's number: after a kill, too, what is his stays. */
import { lstatSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { publish } from '../../src/durable/publish/publish.js'
import { directoryPublication } from '../../src/durable/publish/replace.js'
import { Killed } from './intercepted.js'
import { moved, Numbered, Observed, others, stagingIn } from './relocation-story.js'

for (const form of ['exchange', 'symlink'] as const) {
  for (const [what, [put, look, theirs]] of Object.entries(others)) {
    await t.test(`${what}, ${form}`, async (t) => {
      const { root, from, fs } = await moved(t)
      const { ino } = lstatSync(from, { bigint: true })
      class Replaced extends Observed {
        override async rename(...args: Parameters<NodeFileSystem['rename']>): Promise<void> {
          if (args[4] !== 'exchange') return super.rename(...args)
          rmSync(from)
          put(from)
          await super.rename(...args)
          throw new Killed()
        }
      }
      const dying = new Replaced()
      dying.time = fs.time
      const request = { target: from, files: { a: '4' }, publish: form }
      await publish([directoryPublication(dying, request)])
      // What came out lies under this name until the next run.
      const next = new Numbered(stagingIn(join(root, 'was')), ino, fs.time)
      const [outcome] = await publish([directoryPublication(next, request)])
      t.notOk(outcome && 'error' in outcome && outcome.error.message)
      const [kept = ''] = readdirSync(join(root, 'was')).filter((name) => name.endsWith('.foreign'))
      t.equal(look(join(root, 'was', kept)), theirs)
    })
  }
}
