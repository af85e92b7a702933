/** Old content that may go: its end where another program has added files, and the name that it gets. */
import t from 'tap'
import { removeUnused } from '../../src/durable/keep/retired.js'
import type { KnownEntry } from '../../src/durable/record/index.js'
import { find } from '../crash/model/content.js'
import { makeDirectory, makeEntry } from '../crash/model/scenario.js'
import { names, published, target } from './model-target.js'

const random = '0123456789abcdef'

/** The old content of this name with an unknown file; what remains of it, the log, and the directory then. */
async function removed(name: string, entries: readonly KnownEntry[] = [], mounts: string[] = []) {
  const { disk, fs, beside } = await published()
  fs.mountsBelow = () => Promise.resolve(mounts)
  makeDirectory(disk, `/etc/${name}`, 0o755)
  makeEntry(disk, `/etc/${name}/added`, 'file', 0o644, 'precious')
  const lines: string[] = []
  const hear = (fields: object, message: string): void => void lines.push(`${message} ${JSON.stringify(fields)}`)
  const log = { debug: hear, info: hear, warn: hear, error: hear }
  const parent = await fs.openPath('/etc')
  const inode = (await fs.look(parent, name))?.inode.toString() ?? ''
  const tree = { name, inode, until: 0, entries }
  const staying = await removeUnused({ fs, parent, path: target, names, log }, [tree], { most: 1 })
  await fs.close(parent)
  return { staying: staying.map((one) => one.name), lines, names: beside(), disk, open: fs.descriptors }
}

await t.test(
  'removeUnused keeps old content as a whole where another program has added to it, and is done with it',
  async (t) => {
    const { staying, lines, disk, open } = await removed(names.staging(random))
    t.equal(staying.length + open, 0)
    t.equal(find(disk, `/etc/${names.quarantine(random)}/added`)?.now.data, 'precious')
    t.match(lines.join('\n'), /^another program changed \/etc\/certs while holdfast replaced it; [^\n]*$/)
  },
)

await t.test(
  'under a name that is none of this target’s it stays where it is, and the log says what kept it',
  async (t) => {
    const { staying, lines, disk, open } = await removed('other')
    t.strictSame([staying, open], [['other'], 0])
    t.equal(find(disk, '/etc/other/added')?.now.data, 'precious')
    t.match(
      lines.join('\n'),
      /^could not remove old content; the next run retries [^\n]*"leftover":"other"[^\n]*ENOTEMPTY[^\n]*$/,
    )
  },
)

await t.test('removeUnused empties no old content in which another program has mounted something', async (t) => {
  const entries = [{ path: 'added', type: 'file', sha256: '' }] as const
  const name = names.staging(random)
  t.strictSame((await removed(name, entries)).staying, [])
  const { staying, lines, disk } = await removed(name, entries, ['mounted'])
  t.strictSame([staying, find(disk, `/etc/${name}/added`)?.now.data], [[name], 'precious'])
  t.match(lines.join('\n'), /^could not remove old content; the next run retries [^\n]*mounted in it is a mount point/)
})
