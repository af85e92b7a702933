/** ACLs and user attributes are an administrator's: a change to them is no drift, and is reported once. On the model disk. */
import t from 'tap'
import { directoryPublication, filePublication } from '../../src/durable/replace.js'
import type { PublicationOptions } from '../../src/durable/types.js'
import { publish } from '../../src/durable/publish.js'
import { access, changeExtended, listOf } from '../crash/model/access-lists.js'
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
  /** What setfacl does to the file that holds the content. */
  const setList = (permissions: number): void => {
    const target = disk.child(rootInode, 't')
    const link = target && disk.child(target.number, '..data')
    const holder = form === 'symlink' ? target && disk.child(target.number, link?.now.data ?? '') : target
    const file = form === 'file' ? target : holder && disk.child(holder.number, 'a')
    if (!file) throw new Error('nothing is published')
    const list = listOf(6, permissions, 0, permissions, 0)
    disk.setMetadata(file.number, changeExtended(file.now.attributes, access, list), 'setfacl')
  }
  return { run, setList }
}

for (const form of forms) {
  await t.test(form, async (t) => {
    const { run, setList } = scene(form)
    t.match(await run('1'), { outcome: 'created', said: [] })
    t.match(await run('1'), { outcome: 'unchanged', said: [] })
    setList(4)
    t.match(await run('1'), { outcome: 'unchanged', said: [told] }, 'an ACL is no drift, and is reported')
    t.match(await run('1'), { outcome: 'unchanged', said: [] }, 'once')
    t.match(await run('2'), { outcome: 'replaced', said: [] }, 'it is kept')
    t.match(await run('2'), { outcome: 'unchanged', said: [] }, 'and what is kept is no change')
    setList(6)
    t.match(await run('3'), { outcome: 'replaced', said: [told] }, 'reported by a replacement, too')
    t.match(await run('3'), { outcome: 'unchanged', said: [] })
  })
}
