/** ACLs and user attributes are an administrator's: a change to them is no drift, and is reported once. On the model disk. */
import t from 'tap'
import { directoryPublication, filePublication } from '../../src/durable/publish/replace.js'
import type { PublicationOptions } from '../../src/durable/types.js'
import { publish } from '../../src/durable/publish/publish.js'
import { access, changeExtended, listOf } from '../crash/model/access-lists.js'
import type { Inode } from '../crash/model/inode.js'
import { ModelDisk, rootInode } from '../crash/model/model-disk.js'
import { ModelProcess } from '../crash/model/model-process.js'

const forms = ['exchange', 'symlink', 'file'] as const
const told = /another program changed ACLs or user attributes/

/** A disk with one target, and what each publication of it said. */
function scene(form: (typeof forms)[number]) {
  const disk = new ModelDisk()
  const run = async (content: string): Promise<{ outcome: unknown; said: string[] }> => {
    const said: string[] = []
    const hear = (_: object, message: string): void => void said.push(message)
    const options: PublicationOptions = { log: { debug() {}, info: hear, warn: hear, error: hear } }
    const process = new ModelProcess(disk)
    const publication =
      form === 'file'
        ? filePublication(process, '/t', content, options)
        : directoryPublication(process, {
            target: '/t',
            files: { a: content, 'sub/b': 'same' },
            publish: form,
            ...options,
          })
    const [outcome] = await publish([publication])
    return { outcome: outcome && 'error' in outcome ? outcome.error : outcome?.outcome, said }
  }
  /** The file that holds the content. */
  const file = (): Inode => {
    const target = disk.child(rootInode, 't')
    const link = target && disk.child(target.number, '..data')
    const holder = form === 'symlink' ? target && disk.child(target.number, link?.now.data ?? '') : target
    const found = form === 'file' ? target : holder && disk.child(holder.number, 'a')
    if (!found) throw new Error('nothing is published')
    return found
  }
  /** What setfacl does to it. */
  const setList = (permissions: number): void => {
    const { number, now } = file()
    const list = listOf(6, permissions, 0, permissions, 0)
    disk.setMetadata(number, changeExtended(now.attributes, access, list), 'setfacl')
  }
  /** What chcon does to the target, and to that file. */
  const setLabels = (...labels: [string, string]): void =>
    [disk.child(rootInode, 't') ?? file(), file()].forEach(({ number }, index) =>
      disk.setMetadata(number, { label: labels[index] ?? '' }, 'chcon'),
    )
  return { run, setList, setLabels, label: () => file().now.attributes.label }
}

for (const form of forms) {
  await t.test(form, async (t) => {
    const { run, setList } = scene(form)
    // An empty list as a pattern would match any list.
    const expect = async (
      content: string,
      outcome: string,
      reported: boolean,
      message = 'as expected',
    ): Promise<void> => {
      const result = await run(content)
      t.equal(result.outcome, outcome, message)
      t.equal(result.said.length, reported ? 1 : 0, message)
      if (reported) t.match(result.said[0], told, message)
    }
    await expect('1', 'created', false)
    await expect('1', 'unchanged', false)
    setList(4)
    await expect('1', 'unchanged', true, 'an ACL is no drift, and is reported')
    await expect('1', 'unchanged', false, 'once')
    await expect('2', 'replaced', false, 'it is kept')
    await expect('2', 'unchanged', false, 'and what is kept is no change')
    setList(6)
    await expect('3', 'replaced', true, 'reported by a replacement, too')
    await expect('3', 'unchanged', false)
  })
}

for (const form of forms) {
  await t.test(`a file of the form ${form} keeps the SELinux label that an administrator has given it`, async (t) => {
    const { run, setLabels, label } = scene(form)
    await run('old')
    setLabels('etc_t', 'cert_t')
    t.equal((await run('new')).outcome, 'replaced')
    t.equal(label(), 'cert_t')
  })
}
