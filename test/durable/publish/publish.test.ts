import { readdirSync, readFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { DurableWriteError, OverlappingTargets } from '../../../src/durable/errors.js'
import type { Descriptor } from '../../../src/durable/file-system.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { publish, resultsOf } from '../../../src/durable/publish/publish.js'
import type { TargetPublication } from '../../../src/durable/publish/publication.js'
import { directoryPublication, filePublication } from '../../../src/durable/publish/replace.js'
import type { ContentCheck, FileContent, ReplaceResult } from '../../../src/durable/types.js'
import { ModelDisk } from '../../crash/model/model-disk.js'
import { ModelProcess } from '../../crash/model/model-process.js'
import { failure, intercepted } from '../intercepted.js'
import { contents, kept, scratch, scratchWith } from '../scratch.js'
import { isKind } from '../../crash/judge/names.js'

await t.test(
  'an abort before the exchange changes nothing; one after it is too late, and skips no barrier',
  async (t) => {
    const [parent, target] = scratchWith(t, 'certs')
    for (const [abortAt, outcome] of [
      ['sync', { error: { code: 'ABORT_ERR', published: false, path: target } }],
      ['rename', { outcome: 'created' }],
    ] as const) {
      const calls: string[] = []
      const controller = new AbortController()
      const { fs, open } = intercepted((call) => {
        calls.push(call)
        if (call === abortAt) controller.abort()
      })
      t.match(await publish([directoryPublication(fs, { target, files: { a: '1' } })], controller.signal), [outcome])
      t.equal(open.size, 0)
      if (abortAt === 'sync') t.same(kept(parent), ['lock'], 'what was staged has gone')
      else t.ok(calls.indexOf('sync', calls.indexOf('rename')) > 0, 'a barrier follows the exchange')
    }
    t.same(contents(target), { a: '1' })
    t.same(kept(parent), ['lock', 'record'])
    const controller = new AbortController()
    controller.abort()
    const late = directoryPublication(new NodeFileSystem(), { target, files: { a: '2' } })
    t.match(await publish([late], controller.signal), [{ error: { code: 'ABORT_ERR' } }])
    t.same(contents(target), { a: '1' })
  },
)

await t.test('the next call of this process gets its turn once the lock is free for it', async (t) => {
  const target = join(scratch(t), 'certs')
  /** A close that takes its time, as that of a file without names does. */
  class Slow extends NodeFileSystem {
    override async close(descriptor: Descriptor): Promise<void> {
      for (let turn = 0; turn < 20; turn++) await setImmediate()
      return super.close(descriptor)
    }
  }
  const one = (a: string) => publish([directoryPublication(new Slow(), { target, files: { a } })])
  const results = await Promise.all(['1', '2', '3'].map(one))
  // Which of them comes first is not promised: each looks at the path before it queues.
  const outcomes = results.flat().map((one) => ('error' in one ? one.error : one.outcome))
  t.same(outcomes.sort(), ['created', 'replaced', 'replaced'])
})

await t.test('a record says whether the old content was this program’s', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  const owned = (): unknown => {
    const name = readdirSync(parent).find(isKind('record')) ?? ''
    const [line = ''] = readFileSync(join(parent, name), 'utf8').split('\n')
    return (JSON.parse(line.slice(65)) as { owned?: unknown }).owned
  }
  const put = async (a: string): Promise<void> => {
    const [result] = await publish([directoryPublication(new NodeFileSystem(), { target, files: { a } })])
    t.match(result, { outcome: 'replaced' })
  }
  mkdirSync(target)
  await put('1')
  t.equal(owned(), false, 'somebody else’s directory')
  await put('2')
  t.equal(owned(), true)
  writeFileSync(join(target, 'more'), '')
  await put('3')
  t.equal(owned(), true, 'drifted')
})

await t.test('publish names the first by path of several targets that lie in one another, in any order', async (t) => {
  const process = new ModelProcess(new ModelDisk())
  const batch = ['/z/below', '/z', '/a/below', '/a'].map((target) =>
    directoryPublication(process, { target, files: { a: '1' } }),
  )
  const told = await publish(batch).catch((error: unknown) =>
    error instanceof OverlappingTargets ? error.paths : error,
  )
  t.strictSame(told, ['/a/below', '/a'])
})

await t.test(
  'publish refuses a target that lies in another one, whatever else keeps it from being published',
  async (t) => {
    const process = new ModelProcess(new ModelDisk())
    const file = (path: string, content: FileContent = '2') => filePublication(process, path, content, {})
    t.match(await publish([file('/d/f', '1')]), [{ outcome: 'created' }])
    await process.createLink(await process.openPath('/'), 'link', 'd')
    for (const [outer, inner, content] of [
      ['/d/f', '/d/f/inside'],
      ['/d/f', '/d/f/new/inside'],
      ['/d/f', '/link/f/inside'],
      ['/link/f', '/d/f/inside'],
      ['/d/new', '/d/new/inside', { path: '/none' }],
    ] as const) {
      const told = await publish([file(outer), file(inner, content)]).catch((error: unknown) =>
        error instanceof OverlappingTargets ? [...error.paths].sort() : error,
      )
      t.strictSame(told, [inner, outer].sort())
    }
    t.match(await publish([file('/d/f', '1')]), [{ outcome: 'unchanged' }])
    // The file keeps both from being published, and neither lies in the other.
    const both = await publish([file('/d/f/one'), file('/d/f/two'), file('/d/other')])
    t.match(both, [{ error: { code: 'ENOTDIR' } }, { error: { code: 'ENOTDIR' } }, { outcome: 'created' }])
  },
)

await t.test('publish reports content as visible where it cannot check that', async (t) => {
  const disk = new ModelDisk()
  const process = new ModelProcess(disk)
  let renamed = false
  process.before = (call, name) => {
    if (renamed && call === 'look' && name === 't') throw failure('EIO', 'lstat')
    renamed ||= call === 'rename'
  }
  const said: string[] = []
  const hear = (_: object, message: string): void => void said.push(message)
  const log = { debug() {}, info: hear, warn: hear, error: hear }
  const [outcome] = await publish([filePublication(process, '/t', '1', { log })])
  t.equal(outcome && 'error' in outcome ? 'failed' : outcome?.outcome, 'created')
  t.strictSame(said, ['could not tell whether the new content is visible'])
})

await t.test('publish has a directory’s content examined, and refuses it before it makes anything', async (t) => {
  const calls: string[] = []
  const process = new ModelProcess(new ModelDisk())
  process.before = (call) => void calls.push(call)
  let isRefused = false
  const check: ContentCheck = {
    accepts: () => {
      calls.push('accepts')
      if (isRefused) throw failure('EPERM', 'of the check')
    },
    examine: ({ directory }) => {
      calls.push(directory.replaceAll(/-[0-9a-f]{16}/g, ''))
      return Promise.resolve()
    },
  }
  const run = async (publication: TargetPublication): Promise<unknown> => {
    calls.splice(0)
    const [outcome] = await publish([publication])
    return outcome && 'error' in outcome ? outcome.error.code : outcome?.outcome
  }
  const examined = (): string[] => calls.filter((call) => call.startsWith('/'))
  t.equal(await run(filePublication(process, '/f', '1', { check })), 'created')
  t.strictSame(examined(), [])
  t.equal(await run(directoryPublication(process, { target: '/t', files: { a: '1' }, check })), 'created')
  t.strictSame(examined(), ['/.holdfast'])
  const form = { target: '/s', publish: 'symlink', check } as const
  t.equal(await run(directoryPublication(process, { ...form, files: { a: '1' } })), 'created')
  t.strictSame(examined(), ['/.holdfast/..1'], 'where it is staged')
  t.equal(await run(directoryPublication(process, { ...form, files: { a: '2' } })), 'replaced')
  t.strictSame(examined(), ['/s/..2'])
  isRefused = true
  t.equal(await run(directoryPublication(process, { ...form, files: { a: '3' } })), 'EPERM')
  const since = calls.slice(calls.indexOf('accepts') + 1)
  t.notOk(
    since.some((call) => /^(open|create|write)/.test(call)),
    since.join(),
  )
})

await t.test('of a batch the gravest failure is thrown, and says what became of the rest', async (t) => {
  const failed = (path: string, published: boolean): { error: DurableWriteError } => ({
    error: new DurableWriteError(`could not publish ${path}`, { code: 'EIO', syscall: 'fsync', path, published }),
  })
  const done = (path: string, outcome: ReplaceResult['outcome']): ReplaceResult => ({
    path,
    outcome,
    digest: '',
    sequence: 1,
  })
  t.same(resultsOf([done('/a', 'created'), done('/b', 'unchanged')]), [done('/a', 'created'), done('/b', 'unchanged')])
  const thrown = (...outcomes: Parameters<typeof resultsOf>[0]): DurableWriteError | undefined => {
    try {
      resultsOf(outcomes)
      return undefined
    } catch (error) {
      return error as DurableWriteError
    }
  }
  t.match(thrown(failed('/a', false), failed('/b', true)), { path: '/b', published: true })
  t.match(thrown(failed('/a', false), failed('/b', false)), { path: '/a', published: false })
  const mixed = thrown(failed('/a', false), done('/b', 'created'), done('/c', 'unchanged'), failed('/d', false))
  t.match(mixed?.message, /failed too: \/d; .*published all the same: \/b$/)
  t.notMatch(thrown(failed('/a', false), done('/c', 'unchanged'))?.message, /failed too|all the same/)
})
