/*
 * Target and staging are two names of one directory, which an ext4 without a journal can leave: to remove one is to empty the
 * other. A test cannot make a second name of a directory, so a look at the staging name answers for the target.
 */
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { publish } from '../../../src/durable/publish/publish.js'
import { contents, scratchWith } from '../../durable/scratch.js'

await t.test('holdfast touches nothing, and says so', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  const real = new NodeFileSystem()
  const files = { a: 'old' }
  await publish([directoryPublication(real, { target, files })])
  const staging = namesFor('certs').staging('0123456789abcdef')
  mkdirSync(join(parent, staging))
  const before = readdirSync(parent).sort()

  class OneInode extends NodeFileSystem {
    override look(directory: number, name: string): ReturnType<NodeFileSystem['look']> {
      return super.look(directory, name === staging ? 'certs' : name)
    }
  }
  for (const wanted of [files, { a: 'new' }]) {
    t.match(await publish([directoryPublication(new OneInode(), { target, files: wanted })]), [
      {
        error: {
          code: 'EUCLEAN',
          reason: 'TargetUnfit',
          published: false,
          message:
            /are one directory: the file system is damaged; nothing was changed; unmount the file system and run fsck/,
        },
      },
    ])
    t.same(readdirSync(parent).sort(), before)
    t.same(contents(target), files)
  }
  t.match(
    await publish([directoryPublication(real, { target, files })]),
    [{ outcome: 'unchanged' }],
    'two directories are no obstacle',
  )
  t.notOk(readdirSync(parent).includes(staging), 'and what is staged goes')
})
