/** What small parts of the core answer where nothing but their own words tells it: lists that are cut, failures that are wrapped. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { clean } from '../../src/durable/keep/clean.js'
import { DurableWriteError } from '../../src/durable/errors.js'
import { readPublication } from '../../src/durable/index.js'
import { namesFor } from '../../src/durable/path/names.js'
import { isOfThis, isSame, pathWithin } from '../../src/durable/path/place.js'
import { knownFields } from '../../src/durable/record/record-fields.js'
import { resultsOf, type PublishOutcome } from '../../src/durable/publish/publish.js'
import { filePublication, planDirectory } from '../../src/durable/publish/replace.js'
import { silent } from '../../src/log.js'
import { failure, intercepted } from './intercepted.js'
import { scratch } from './scratch.js'

await t.test('a place in a record is all of it', async (t) => {
  const identity = { inode: '1', birth: '0' }
  const whole = { within: '/a', parent: identity, target: identity }
  const rows: [unknown, boolean][] = [
    [undefined, false],
    [whole, true],
    [null, false],
    [{ ...whole, within: 5 }, false],
    [{ ...whole, parent: undefined }, false],
    [{ ...whole, parent: { birth: '0' } }, false],
    [{ ...whole, target: { inode: '1' } }, false],
    [{ ...whole, target: { inode: 1, birth: '0' } }, false],
  ]
  const answer = (place: unknown): unknown => {
    try {
      return knownFields.place.is(place)
    } catch {
      return 'thrown'
    }
  }
  for (const [place, expected] of rows) t.equal(answer(place), expected, JSON.stringify(place))
})

await t.test("isSame compares the inode's number, and its birth if the kernel has both", async (t) => {
  const rows: [recorded: string, found: string | undefined, expected: boolean][] = [
    ['1 5', '1 5', true],
    ['1 5', '2 5', false],
    ['1 5', '1 6', false],
    ['1 0', '1 6', true],
    ['1 5', '1 0', true],
    ['1 0', '2 0', false],
    ['1 5', undefined, false],
  ]
  const identity = (text: string) => {
    const [inode = '', birth = ''] = text.split(' ')
    return { inode, birth }
  }
  for (const [recorded, found, expected] of rows) {
    t.equal(
      isSame(identity(recorded), found === undefined ? undefined : identity(found)),
      expected,
      `${recorded}, ${found}`,
    )
  }
  const place = { within: '/a', parent: identity('1 5'), target: identity('2 5') }
  const isOf = (parent: string, target: string, otherBoot: boolean, lasting: boolean): boolean =>
    isOfThis({ place, otherBoot }, { parent: identity(parent), target: identity(target), lasting })
  for (const [otherBoot, lasting] of [
    [false, false],
    [false, true],
    [true, true],
  ] as const) {
    t.equal(isOf('1 5', '2 5', otherBoot, lasting), true)
    t.equal(isOf('3 5', '2 5', otherBoot, lasting), false, 'another parent')
    t.equal(isOf('1 5', '3 5', otherBoot, lasting), false, 'another target')
  }
  t.equal(isOf('3 5', '4 5', true, false), true, 'numbers that another boot may deal out again')
})

await t.test('a path in its file system', async (t) => {
  const rows: [root: string, mountPoint: string, path: string, within: string][] = [
    ['/', '/', '/a/b', '/a/b'],
    ['/sub', '/', '/a', '/sub/a'],
    ['/', '/m', '/m/a', '/a'],
    ['/sub', '/m', '/m/a', '/sub/a'],
    ['/sub', '/m', '/m', '/sub'],
    ['/sub', '/m', '/more/a', '/more/a'],
  ]
  for (const [root, mountPoint, path, within] of rows) t.equal(pathWithin({ root, mountPoint }, path), within, path)
})

await t.test(
  'a batch that failed names three of those that failed too, and of those that were published',
  async (t) => {
    const failed = (path: string, published = false): PublishOutcome => ({
      error: new DurableWriteError(`could not publish ${path}`, { code: 'EIO', syscall: 'write', path, published }),
    })
    const done = (path: string, outcome: 'created' | 'unchanged' = 'created'): PublishOutcome => ({
      path,
      outcome,
      digest: 'sha256:0',
      sequence: 1,
    })
    const messageOf = (outcomes: readonly PublishOutcome[]): string => {
      try {
        return resultsOf(outcomes).length.toString()
      } catch (error) {
        return (error as Error).message
      }
    }
    t.equal(messageOf([done('/a'), done('/b', 'unchanged')]), '2')
    const all = messageOf([
      ...['/e0', '/e1', '/e2', '/e3'].map((path) => failed(path)),
      failed('/unknown', true),
      ...['/c0', '/c1', '/c2', '/c3'].map((path) => done(path)),
      done('/same', 'unchanged'),
    ])
    t.match(all, /could not publish \/unknown/, 'the gravest first')
    t.ok(all.includes('these failed too: /e0, /e1, /e2 and 1 more'), all)
    t.ok(all.includes('these were published all the same: /c0, /c1, /c2 and 1 more'), all)
    t.notMatch(messageOf([failed('/e'), done('/same', 'unchanged')]), /these/)
  },
)

await t.test('what cannot be removed is answered, reported and told; the rest goes', async (t) => {
  const directory = scratch(t)
  for (const name of ['a', 'b', 'c']) writeFileSync(join(directory, name), '')
  const { fs } = intercepted((call, args) => {
    if (call === 'removeFile' && args.includes('b')) throw failure('EPERM', call)
  })
  const parent = await fs.openPath(directory)
  const warnings: object[] = []
  const log = { ...silent, warn: (fields: object) => void warnings.push(fields) }
  const told: unknown[] = []
  const area = { fs, parent, path: '/target', names: namesFor('target'), log }
  t.same(await clean(area, ['a', 'b', 'c'], { most: 1 }, (error) => told.push(error)), ['b'])
  t.same(readdirSync(directory), ['b'])
  t.match(warnings, [{ path: '/target', leftover: 'b', error: /EPERM/ }])
  t.match(told, [{ code: 'EPERM' }])
  await fs.close(parent)
})

await t.test('what the system answers is wrapped: with the target, and nothing is published', async (t) => {
  const directory = scratch(t)
  const target = join(directory, 'x'.repeat(256), 'target')
  await t.rejects(planDirectory({ target, files: {} }), {
    name: 'DurableWriteError',
    message: /^could not plan the publication of /,
    code: 'ENAMETOOLONG',
    published: false,
  })
  await t.rejects(readPublication(target), {
    name: 'DurableWriteError',
    message: /^could not read /,
    code: 'ENAMETOOLONG',
    published: false,
  })
  mkdirSync(join(directory, 'a'))
  const { fs } = intercepted(() => undefined)
  t.throws(() => filePublication(fs, `${directory}/a/`, '', {}), { message: /\/a\/" ends with a slash: name a file$/ })
})
