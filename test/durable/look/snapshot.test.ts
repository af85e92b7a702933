/** A look at a target: what it reads, which record speaks, and when it is taken again. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { lookUntilQuiet, readTarget, refuseMissed } from '../../../src/durable/look/snapshot.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import type { RecordKind } from '../../../src/durable/record/record-fields.js'
import { codeOf } from '../../../src/errors.js'
import { failure, intercepted } from '../intercepted.js'
import { record } from '../judge-rows.js'
import { valueOf } from '../judgements.js'
import { scratch, scratchWith } from '../scratch.js'

await t.test('who looks beside a publication looks again, until it is quiet or eight times', async (t) => {
  const [, target] = scratchWith(t, 'certs')
  const fs = new NodeFileSystem()
  /** The answers of one look after the other, and how many were taken. */
  const looking = async (look: (count: number) => { sequence: number; quiet: boolean } | undefined) => {
    let count = 0
    const state: unknown = await lookUntilQuiet(fs, target, async (seen) => {
      if (++count > 20) throw failure('ETIMEDOUT', 'look')
      const found = look(count)
      seen.record = async () => Promise.resolve(record(found?.sequence ?? 0, null, 'a'))
      return Promise.resolve(found && { quiet: found.quiet, state: count })
    }).catch(codeOf)
    return [state, count]
  }
  t.strictSame(await looking(() => undefined), [undefined, 1])
  t.strictSame(await looking(() => ({ sequence: 1, quiet: true })), [1, 1])
  t.strictSame(await looking(() => ({ sequence: 1, quiet: false })), [2, 2], 'nobody publishes: it has drifted')
  t.strictSame(await looking((sequence) => ({ sequence, quiet: sequence === 3 })), [3, 3])
  t.strictSame(await looking((sequence) => ({ sequence, quiet: false })), [8, 8])
  for (const code of ['ENOENT', 'ENOTDIR', 'ELOOP', 'ESTALE']) {
    const gone = (until: number) => (count: number) => {
      if (count < until) throw failure(code, 'openat2')
      return { sequence: 1, quiet: true }
    }
    t.strictSame(await looking(gone(2)), [2, 2], `${code}: what was listed was gone`)
    t.strictSame(await looking(gone(9)), [code, 8], 'at each look')
  }
  const broken = () => {
    throw failure('EIO', 'openat2')
  }
  t.strictSame(await looking(broken), ['EIO', 1])
  const between = (count: number) => {
    if (count === 2) throw failure('ENOENT', 'openat2')
    return { sequence: 1, quiet: false }
  }
  t.strictSame(await looking(between), [4, 4], 'two looks that follow each other are compared')
})

await t.test('readTarget reads the form of the publication; an entry that goes meanwhile is not there', async (t) => {
  const root = scratch(t)
  mkdirSync(join(root, 'directory'))
  writeFileSync(join(root, 'file'), 'x')
  let code = ''
  const { fs, open } = intercepted((call, [, name]) => {
    if (code !== '' && call === 'openDirectory' && name === 'directory') throw failure(code, 'openat2')
  })
  const parent = await fs.openPath(root)
  const read = async (name: string, kind: RecordKind | undefined): Promise<unknown> =>
    readTarget(fs, join(root, name), parent, name, kind, []).then((tree) => tree?.entries.length, codeOf)
  const kinds = ['exchange', 'symlink', 'file', undefined] as const
  const all = async (name: string) => Promise.all(kinds.map((kind) => read(name, kind)))
  t.strictSame(await all('directory'), [1, undefined, undefined, 1])
  t.strictSame(await all('file'), [undefined, undefined, 1, 1])
  t.strictSame(await all('none'), [undefined, undefined, undefined, undefined])
  code = 'ENOENT'
  t.strictSame(await all('directory'), [undefined, undefined, undefined, undefined])
  code = 'EIO'
  t.strictSame(await all('directory'), ['EIO', 'EIO', undefined, 'EIO'])
  t.strictSame([...open], [parent])
  await fs.close(parent)
})

await t.test('a record that goes during the read matters only where no other one remains', async (t) => {
  const refused = (count: number, missed: boolean): boolean => {
    const records = Array.from({ length: count }, () => record(1, null, 'a'))
    return valueOf(() => refuseMissed('/srv/certs', records, missed)) === 'fails'
  }
  t.strictSame([refused(0, true), refused(1, true), refused(2, true)], [true, false, false])
  t.strictSame([refused(0, false), refused(1, false)], [false, false])
  t.throws(() => refuseMissed('/srv/certs', [], true), {
    message: 'the record beside /srv/certs was replaced at each of 8 looks: try again',
  })
})
