import { chownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { directoryPublication, filePublication } from '../../src/durable/publish/replace.js'
import { readPublication } from '../../src/durable/look/inspect.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { publish } from '../../src/durable/publish/publish.js'
import { failure, intercepted, Killed, Rebooted } from './intercepted.js'
import { contents, kept, scratch, scratchWith } from './scratch.js'

const real = new NodeFileSystem()
const files = { a: 'new', b: 'new' }

await t.test(
  'what a failed barrier 2 left visible is never called unchanged, until it is published again',
  async (t) => {
    for (const code of ['EIO', 'EROFS']) {
      const [parent, target] = scratchWith(t, 'certs')
      await publish([directoryPublication(real, { target, files: { a: 'old' } })])
      let swapped = false
      const { fs } = intercepted((call) => {
        if (call === 'rename') swapped = true
        if (swapped && call === 'sync') throw failure(code, 'fsync')
      })
      const [result] = await publish([directoryPublication(fs, { target, files })])
      t.match(result, {
        error: { code, published: true, reason: 'DurabilityUnknown', message: /not known to survive/ },
      })
      t.same(contents(target), files)
      t.same(kept(parent), ['lock', 'record', 'record', 'staging'], 'both directories are kept')
      const inode = statSync(join(target, 'a')).ino
      t.match(await publish([directoryPublication(real, { target, files })]), [{ outcome: 'replaced' }])
      t.not(statSync(join(target, 'a')).ino, inode, 'from fresh inodes')
      t.same(kept(parent), ['lock', 'record'])
      t.match(await publish([directoryPublication(real, { target, files })]), [{ outcome: 'unchanged' }])
    }
  },
)

await t.test('the mutation after barrier 2 finds an exchange that was lost', async (t) => {
  const parent = scratch(t)
  const target = join(parent, 'certs')
  await publish([directoryPublication(real, { target, files: { a: 'old' } })])
  let swapped = false
  const { fs } = intercepted((call) => {
    if (call === 'rename') swapped = true
    if (swapped && call === 'removeFile') throw failure('EROFS', 'unlink')
  })
  t.match(await publish([directoryPublication(fs, { target, files })]), [{ error: { code: 'EROFS', published: true } }])
  t.match(await publish([directoryPublication(real, { target, files })]), [{ outcome: 'replaced' }])
})

await t.test(
  'killed between exchange and settling: the successor deletes nothing before its own is committed',
  async (t) => {
    const [parent, target] = scratchWith(t, 'certs')
    await publish([directoryPublication(real, { target, files: { a: 'old' } })])
    let dead = false
    const { fs } = intercepted((call) => {
      if (dead) throw new Killed()
      if (call === 'rename') dead = true
    })
    await publish([directoryPublication(fs, { target, files })]).catch(() => undefined)
    t.same(contents(target), files, 'exchanged')
    t.same(kept(parent), ['lock', 'record', 'record', 'staging'])
    const removals: string[] = []
    let synced = 0
    const watched = intercepted((call, args) => {
      if (call === 'sync') synced += 1
      if (/^remove/.test(call)) removals.push(`${synced} ${String(args[1])}`)
    })
    await publish([directoryPublication(watched.fs, { target, files: { a: 'third' } })])
    t.ok(removals.length > 4, `${removals.length} removals`)
    t.ok(
      removals.every((removal) => removal.startsWith('2 ')),
      'each came after both barriers',
    )
    t.same(contents(target), { a: 'third' })
    t.same(kept(parent), ['lock', 'record'])
  },
)

await t.test('recovery trusts a record of another boot without its mark: the content came from the disk', async (t) => {
  const parent = scratch(t)
  const target = join(parent, 'certs')
  let swapped = false
  const { fs } = intercepted((call) => {
    if (call === 'rename') swapped = true
    if (swapped && call === 'write') throw failure('EIO', 'write')
  })
  t.match(
    await publish([directoryPublication(fs, { target, files })]),
    [{ outcome: 'created' }],
    'only the mark failed',
  )
  const rebooted = new Rebooted()
  t.match(await readPublication(real, target), { durable: false }, 'the same boot')
  t.match(await publish([directoryPublication(rebooted, { target, files })]), [{ outcome: 'unchanged' }])
  t.match(await readPublication(real, target), { durable: true }, 'the mark is made up for')
  t.match(await publish([directoryPublication(real, { target, files })]), [{ outcome: 'unchanged' }])
})

await t.test('an error of the write-out hint is a failed fsync, and is not tried again', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  await publish([directoryPublication(real, { target, files: { a: 'old' } })])
  let syncs = 0
  const { fs } = intercepted((call) => {
    if (call === 'sync') syncs += 1
    if (call === 'startWriteOut') throw failure('EIO', 'sync_file_range')
  })
  t.match(await publish([directoryPublication(fs, { target, files })]), [
    { error: { code: 'EIO', published: false, message: /as it was; the disk failed/ } },
  ])
  t.equal(syncs, 0)
  t.same(contents(target), { a: 'old' })
  t.same(kept(parent), ['lock', 'record'])
})

await t.test('at the bound of descriptors, staging syncs and closes its files so far, and goes on', async (t) => {
  const parent = scratch(t)
  const target = join(parent, 'certs')
  let openFiles = 0
  let barriers = 0
  const { fs, open } = intercepted((call) => {
    if (call === 'sync') barriers += 1
    openFiles = Math.max(openFiles, open.size)
    if (call === 'createFile' && open.size > 14) throw failure('EMFILE', 'open')
  })
  const bounded = Object.create(fs, { stagedFiles: { value: 3 } }) as typeof fs
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`file-${index}`, `${index}`]))
  t.match(await publish([directoryPublication(bounded, { target, files: many })]), [{ outcome: 'created' }])
  t.same(contents(target), many)
  t.ok(openFiles > 3 && barriers > 3, `${barriers} barriers`)
  t.equal(open.size, 0)
  t.match(await publish([directoryPublication(real, { target, files: many })]), [{ outcome: 'unchanged' }])
})

await t.test('another program in the same instant: its content comes back', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  await publish([directoryPublication(real, { target, files: { a: 'old' } })])
  const { renameSync } = await import('node:fs')
  const { fs } = intercepted((call, args) => {
    if (call !== 'rename' || args[4] !== 'exchange' || readdirSync(parent).includes('away')) return
    renameSync(target, join(parent, 'away'))
    mkdirSync(target)
    writeFileSync(join(target, 'theirs'), 'keep')
  })
  t.match(await publish([directoryPublication(fs, { target, files })]), [
    { error: { reason: 'TargetForeign', published: false, message: /holdfast put its content back/ } },
  ])
  t.same(contents(target), { theirs: 'keep' })
  t.same(contents(join(parent, 'away')), { a: 'old' })
})

await t.test('a torn record, and one of another target, count as none', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  await publish([directoryPublication(real, { target, files })])
  const record = join(parent, readdirSync(parent).find((name) => name.endsWith('.1')) ?? '')
  const text = readFileSync(record, 'utf8')
  writeFileSync(record, text.slice(0, 100))
  t.match(await publish([directoryPublication(real, { target, files })]), [{ outcome: 'replaced' }])
  t.same(kept(parent), ['lock', 'record'])
})

await t.test('a request that is abandoned before the exchange changes nothing', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  await publish([directoryPublication(real, { target, files: { a: 'old' } })])
  const abort = new AbortController()
  const { fs } = intercepted((call) => {
    if (call === 'sync') abort.abort()
  })
  t.match(await publish([directoryPublication(fs, { target, files })], abort.signal), [
    { error: { code: 'ABORT_ERR', published: false } },
  ])
  t.same(contents(target), { a: 'old' })
  t.same(kept(parent), ['lock', 'record'])
})

await t.test('a file is renamed over, never exchanged, never removed first', async (t) => {
  const [parent, target] = scratchWith(t, 'kube-apiserver.yaml')
  const renames: unknown[] = []
  const { fs } = intercepted((call, args) => {
    if (call === 'rename') renames.push(args[4])
    if (/^remove/.test(call) && args[1] === 'kube-apiserver.yaml') throw new Error('removed')
  })
  for (const content of ['1', '2']) await publish([filePublication(fs, target, content, {})])
  t.same(renames, ['noreplace', 'replace'])
  t.equal(readFileSync(join(parent, 'kube-apiserver.yaml'), 'utf8'), '2')
  t.ok(
    readdirSync(parent).every((name) => name === 'kube-apiserver.yaml' || name.startsWith('.')),
    'kubelet reads no file with a leading dot',
  )
})

await t.test('a record of a publication that was given up does not make a foreign directory ours', async (t) => {
  const [parent, target] = scratchWith(t, 'theirs')
  mkdirSync(target)
  writeFileSync(join(target, 'a'), 'theirs')
  const request = { target, foreign: 'same-names' as const }
  let dead = false
  const dying = intercepted((call) => {
    if (call === 'rename') dead = true
    if (dead) throw new Killed()
  })
  await publish([directoryPublication(dying.fs, { ...request, files: { a: '1', b: '2' } })]).catch(() => undefined)
  t.same(kept(parent), ['lock', 'record', 'staging'])
  t.match(await publish([directoryPublication(real, { ...request, files: { c: '3' } })]), [
    { error: { reason: 'TargetForeign' } },
  ])
  t.same(contents(target), { a: 'theirs' })
  t.same(kept(parent), ['lock', 'record'], 'what was staged goes; what readers are told stays as it is')
})

await t.test('what says nothing of the journal does not make a publication doubtful', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  for (const code of ['EACCES', 'EPERM', 'EBUSY']) {
    await publish([directoryPublication(real, { target, files: { a: code } })])
    let refused = 0
    const { fs } = intercepted((call) => {
      if (call === 'removeFile' && refused++ === 0) throw failure(code, 'unlink')
    })
    t.match(await publish([directoryPublication(fs, { target, files })]), [{ outcome: 'replaced' }], code)
    t.same(kept(parent), ['lock', 'record'])
  }
})

await t.test(
  'modes without write permission, as an ordinary user',
  { skip: process.geteuid?.() === 0 ? false : 'only root can become somebody else: run by CI' },
  async (t) => {
    const parent = scratch(t)
    chownSync(parent, 65_534, 65_534)
    process.setegid?.(65_534)
    process.seteuid?.(65_534)
    try {
      const mine = new NodeFileSystem()
      const target = join(parent, 'certs')
      for (const outcome of ['created', 'replaced', 'replaced']) {
        const request = {
          target,
          files: { a: String(Math.random()), 'b/c': '' },
          mode: 0o555,
          fileMode: 0o444,
        }
        t.match(await publish([directoryPublication(mine, request)]), [{ outcome }])
      }
      t.same(kept(parent), ['lock', 'record'])
    } finally {
      process.seteuid?.(0)
      process.setegid?.(0)
    }
  },
)

await t.test('a repair of drift that was killed is still the repair of our own', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  const request = { target, files, foreign: 'same-names' as const }
  await publish([directoryPublication(real, request)])
  writeFileSync(join(target, 'edited'), 'by hand')
  for (let kill = 0; kill < 2; kill++) {
    let dead = false
    const dying = intercepted((call) => {
      if (call === 'rename') dead = true
      if (dead) throw new Killed()
    })
    await publish([directoryPublication(dying.fs, request)]).catch(() => undefined)
    t.ok(kept(parent).includes('staging'))
  }
  t.match(await publish([directoryPublication(real, request)]), [{ outcome: 'replaced' }])
  t.same(contents(target), files)
  t.same(kept(parent), ['lock', 'record'])
})
