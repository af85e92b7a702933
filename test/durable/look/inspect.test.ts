import {
  chmodSync,
  chownSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { tryLock } from '../../../native/index.js'
import {
  completeHook,
  planDirectory,
  readPublication,
  readPublishedFiles,
  recordObjects,
  replaceDirectory,
} from '../../../src/durable/index.js'
import type { FileSystem } from '../../../src/durable/file-system.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { readPublishedContent, readContent } from '../../../src/durable/look/target-content.js'
import { isKind } from '../../crash/judge/names.js'
import { intercepted } from '../intercepted.js'
import { scratch, scratchWith } from '../scratch.js'

const object = { kind: 'Secret', namespace: 'n', name: 's', uid: 'u', resourceVersion: '7', paths: ['a'] }

for (const publish of ['exchange', 'symlink'] as const) {
  await t.test(`readPublication compares the published content with the disk (${publish})`, async (t) => {
    const [parent, target] = scratchWith(t, 'certs')
    t.equal(await readPublication(target), undefined)
    t.equal(await readPublication(join(parent, 'no', 'such')), undefined)
    const files = { a: '1', 'sub/b': '2' }
    const { digest } = await replaceDirectory(target, {
      files,
      publish,
      objects: [object],
      hooks: ['one', 'two'],
    })
    const found = await readPublication(target)
    t.same(found?.differences, [])
    t.match(found, {
      path: target,
      digest,
      actual: digest,
      settled: true,
      objects: [object],
      pendingHooks: ['one', 'two'],
    })
    t.equal(await completeHook(target, digest, 'one'), true)
    t.equal(await completeHook(target, 'sha256:other', 'two'), false)
    t.equal(await recordObjects(target, digest, [{ ...object, resourceVersion: '8' }]), true)
    t.match(await readPublication(target), { pendingHooks: ['two'], objects: [{ resourceVersion: '8' }] })
    t.match(
      await replaceDirectory(target, { files, publish }),
      { outcome: 'unchanged' },
      'appended lines are no change',
    )

    t.ok(
      await readPublishedFiles(target, ['a'])
        .then(({ a }) => a !== undefined)
        .catch(() => false),
      'it is read',
    )
    t.same(await readPublishedFiles(target, ['sub/b', 'gone']), {
      'sub/b': { content: Buffer.from('2'), mode: 0o600 },
    })

    const real = publish === 'symlink' ? join(target, '..data') : target
    writeFileSync(join(real, 'a'), 'edited')
    chmodSync(join(real, 'sub', 'b'), 0o644)
    mkdirSync(join(real, 'new'))
    t.match((await readPublication(target))?.differences, [
      { path: 'a', problem: 'content' },
      { path: 'sub/b', problem: 'mode' },
      { path: 'new', problem: 'unexpected' },
    ])
    rmSync(target, { recursive: true })
    t.match(await readPublication(target), { actual: undefined, digest })
    renameSync(parent, `${parent}-away`)
    t.teardown(() => rmSync(`${parent}-away`, { recursive: true }))
    t.equal(await readPublication(target), undefined)
  })
}

await t.test('a plan writes nothing and says what would change', async (t) => {
  const target = join(scratch(t), 'certs')
  t.match(await planDirectory({ target, files: { a: '1' } }), {
    outcome: 'created',
    changes: [{ path: 'a', change: 'add' }],
  })
  const { digest } = await replaceDirectory(target, { files: { a: '1', b: '2', c: '3' } })
  const plan = await planDirectory({ target, files: { a: '1', b: '2', c: '3' } })
  t.match(plan, { outcome: 'unchanged', digest })
  t.same(plan.changes, [])
  t.match(await planDirectory({ target, files: { a: 'x', b: { content: '2', mode: 0o644 }, d: '' } }), {
    outcome: 'replaced',
    changes: [
      { path: 'a', change: 'change' },
      { path: 'b', change: 'change' },
      { path: 'd', change: 'add' },
      { path: 'c', change: 'remove' },
    ],
  })
})

await t.test("a plan refuses another publisher's lock only on behalf of a caller that is to publish now", async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  await replaceDirectory(target, { files: { a: '1' } })
  const [name = ''] = readdirSync(parent).filter(isKind('lock'))
  const lock = openSync(join(parent, name), 'r')
  t.ok(tryLock(lock))
  const request = { target, files: { a: '2' }, lockTimeout: 0 }
  await t.rejects(planDirectory(request, true), { code: 'EAGAIN' })
  t.match(await planDirectory(request), { outcome: 'replaced' })
  closeSync(lock)
})

await t.test('readPublication of the symlink form compares the links of its consumers, too', async (t) => {
  const isRoot = process.geteuid?.() === 0
  const publish = async (): Promise<string> => {
    const target = join(scratch(t), 'certs')
    await replaceDirectory(target, { files: { a: '1', 'sub/b': '2' }, publish: 'symlink', mode: 0o750 })
    return target
  }
  const cases: [string, object[], (target: string) => void][] = [
    ['nothing', [], () => undefined],
    ['its mode', [{ path: '.', problem: 'mode' }], (target) => chmodSync(target, 0o755)],
    ...(isRoot
      ? [7, 0].map((uid): [string, object[], (target: string) => void] => [
          uid === 7 ? 'its user' : 'its group',
          [{ path: '.', problem: 'owner' }],
          (target) => chownSync(target, uid, 7 - uid),
        ])
      : []),
    ['a link that is gone', [{ path: 'sub', problem: 'missing' }], (target) => unlinkSync(join(target, 'sub'))],
    [
      'a link that leads elsewhere',
      [{ path: 'a', problem: 'missing' }],
      (target) => {
        unlinkSync(join(target, 'a'))
        symlinkSync('..data/sub/b', join(target, 'a'))
      },
    ],
    [
      'a file beside them',
      [{ path: 'more', problem: 'unexpected' }],
      (target) => writeFileSync(join(target, 'more'), ''),
    ],
  ]
  for (const [what, differences, change] of cases) {
    const target = await publish()
    change(target)
    const found = (await readPublication(target))?.differences ?? []
    const key = (difference: object): string => JSON.stringify(difference)
    t.same(found.map(key).sort(), differences.map(key).sort(), what)
  }
  const target = await publish()
  const generation = readlinkSync(join(target, '..data'))
  unlinkSync(join(target, '..data'))
  const publication = await readPublication(target)
  t.equal(publication?.actual, undefined)
  t.match(
    publication?.differences.filter(({ path }) => path.startsWith('..')),
    [
      { path: '..data', problem: 'missing' },
      { path: generation, problem: 'unexpected' },
    ],
  )
})

await t.test('contents that are compared: at most 4 MiB, and the bytes of the digest beside them', async (t) => {
  const target = join(scratch(t), 'certs')
  const largest = Buffer.alloc(4 * 1024 * 1024)
  const files = { a: 'old', large: largest, larger: Buffer.concat([largest, Buffer.from('x')]) }
  await replaceDirectory(target, { files, objects: [object] })
  const bytesIn = async (fs: FileSystem = new NodeFileSystem()) =>
    Object.fromEntries(
      (await readContent(fs, target)).entries.map(({ path, content, size, asRecorded }) => [
        path,
        [content?.length, size, asRecorded],
      ]),
    )
  const expected = {
    '': [undefined, undefined, true],
    a: [3, 3, true],
    large: [largest.length, largest.length, true],
    larger: [undefined, largest.length + 1, true],
  }
  t.same(await bytesIn(), expected)
  let readings = 0
  const { fs } = intercepted((call, args) => {
    if (call === 'openFile' && args[1] === 'a' && ++readings === 2) writeFileSync(join(target, 'a'), 'new')
  })
  t.same(await bytesIn(fs), { ...expected, a: [undefined, 3, true] }, 'changed between two readings')
})

await t.test('readPublishedContent answers only unchanged content for another path', async (t) => {
  const target = join(scratch(t), 'certs')
  const fs = new NodeFileSystem()
  const textsOf = async () => {
    const found = await readPublishedContent(fs, target)
    return found && Object.fromEntries([...found.files].map(([path, bytes]) => [path, Buffer.from(bytes).toString()]))
  }
  t.equal(await textsOf(), undefined)
  const files = { a: '1', 'sub/b': '2' }
  await replaceDirectory(target, { files })
  t.same(await textsOf(), files)
  chmodSync(join(target, 'a'), 0o640)
  t.equal(await textsOf(), undefined, 'a mode of its own')
  await replaceDirectory(target, { files })
  writeFileSync(join(target, 'sub/b'), '3')
  t.equal(await textsOf(), undefined, 'other bytes')
  await replaceDirectory(target, { files })
  t.same(await textsOf(), files)
  for (const change of ['rm', 'write'] as const) {
    let readings = 0
    const beside = intercepted((call, args) => {
      if (call !== 'openFile' || args[1] !== 'b' || ++readings !== 2) return
      if (change === 'rm') unlinkSync(join(target, 'sub/b'))
      else writeFileSync(join(target, 'sub/b'), '3')
    })
    t.equal(await readPublishedContent(beside.fs, target), undefined, `${change} between two readings`)
    t.equal(readings, 2)
    await replaceDirectory(target, { files })
  }
})
