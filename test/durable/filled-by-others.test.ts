/** What the owner of a target can put into it: any number of files, of any size and depth, and files that nobody may open. */
import { spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { linkSync, lstatSync, mkdirSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { describeDifferences } from '../../src/directories/verify.js'
import { isGone, readContent, readPublication } from '../../src/durable/look/index.js'
import { mostRemoved } from '../../src/durable/path/remove.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { publish } from '../../src/durable/publish/publish.js'
import { directoryPublication, filePublication } from '../../src/durable/publish/replace.js'
import type { Entry } from '../../src/durable/file-system.js'
import { contents, kept, scratch, scratchWith } from './scratch.js'

const files = { 'tls.crt': 'certificate', 'tls.key': 'key', 'sub/ca.crt': 'authority' }

/** What was asked of the file system: entries, descriptors, bytes. */
class Counting extends NodeFileSystem {
  listed = 0
  opened = 0
  looks = 0
  bytes = 0

  override async list(...args: Parameters<NodeFileSystem['list']>): Promise<string[]> {
    const names = await super.list(...args)
    this.listed += names.length
    return names
  }

  override async entries(...args: Parameters<NodeFileSystem['entries']>): Promise<Entry[]> {
    const entries = await super.entries(...args)
    this.listed += entries.length
    return entries
  }

  override openFile(...args: Parameters<NodeFileSystem['openFile']>): Promise<number> {
    this.opened += 1
    return super.openFile(...args)
  }

  override openDirectory(...args: Parameters<NodeFileSystem['openDirectory']>): Promise<number> {
    this.opened += 1
    return super.openDirectory(...args)
  }

  override look(...args: Parameters<NodeFileSystem['look']>): ReturnType<NodeFileSystem['look']> {
    this.looks += 1
    return super.look(...args)
  }

  override async *read(file: number, size?: number): AsyncGenerator<Uint8Array, void, void> {
    for await (const piece of super.read(file, size)) {
      this.bytes += piece.length
      // Or the test would not end.
      if (this.bytes > 2 ** 30) throw new Error('more than a GiB')
      yield piece
    }
  }
}

type Fill = (directory: string, t: Test) => unknown

/** Names of one file: to make as many files takes a hundred times as long, and a look or a removal asks nothing else of them. */
function manyNames(count: number): Fill {
  return (directory) => {
    const first = join(directory, 'file-0')
    writeFileSync(first, '')
    for (let number = 1; number < count; number++) linkSync(first, join(directory, `file-${number}`))
  }
}

/** A thousand, each in the one before; by relative paths, since a path has 4,096 bytes at most. */
const deep: Fill = async (directory) => {
  const script = 'import os\nfor n in range(1000):\n  os.mkdir("deeper"); os.chdir("deeper")'
  const [code] = (await once(spawn('python3', ['-c', script], { cwd: directory, stdio: 'inherit' }), 'exit')) as [
    number,
  ]
  if (code !== 0) throw new Error(`python3: ${code}`)
}

const sparse: Fill = (directory) => {
  writeFileSync(join(directory, 'tls.key'), '')
  truncateSync(join(directory, 'tls.key'), 4 * 2 ** 40)
}

const sparseBeside: Fill = (directory) => {
  writeFileSync(join(directory, 'other'), '')
  truncateSync(join(directory, 'other'), 4 * 2 ** 40)
}

/** Its holder never gives it back, though the kernel asks. */
const leased: Fill = async (directory, t) => {
  const script = `
import fcntl, os, signal, sys, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('on', flush=True)
time.sleep(600)`
  const child = spawn('python3', ['-c', script, join(directory, 'tls.key')], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
}

const cases: Record<string, Fill> = {
  'five thousand files': manyNames(5_000),
  'a thousand directories, each in the one before': deep,
  'a published file that becomes a sparse one of 4 TiB': sparse,
  'a sparse file of 4 TiB beside them': sparseBeside,
  'a lease of a published file': leased,
}

/** Where the content is, of a target in this form. */
function within(target: string, form: string): string {
  if (form === 'exchange') return target
  const [generation = ''] = readdirSync(target).filter((name) => /^\.\.\d/.test(name))
  return join(target, generation)
}

for (const form of ['exchange', 'symlink'] as const) {
  for (const [what, fill] of Object.entries(cases)) {
    await t.test(`${what}, in the form ${form}: a look costs what was published`, async (t) => {
      const [parent, target] = scratchWith(t, 'certs')
      const publishing = async (fs: NodeFileSystem) =>
        publish([
          directoryPublication(fs, {
            target,
            files,
            publish: form,
            foreign: 'same-names',
            history: { keep: 1, maxAge: null },
          }),
        ])
      t.match(await publishing(new NodeFileSystem()), [{ outcome: 'created' }])
      await fill(within(target, form), t)

      const fs = new Counting()
      const publication = await readPublication(fs, target)
      t.ok(publication && publication.differences.length > 0)
      t.ok(publication && publication.actual !== publication.digest)
      t.strictSame(
        publication?.differences.filter(({ problem }) => problem === 'more'),
        [{ path: '.', problem: 'more' }],
      )
      t.ok(publication && describeDifferences(publication).some((line) => line.includes('the rest was not looked at')))
      t.notOk(publication?.differences.some(({ problem }) => problem === 'missing'))
      const { entries } = await readContent(new NodeFileSystem(), target)
      for (const path of Object.keys(files))
        t.ok(
          entries.some((entry) => entry.path === path),
          path,
        )
      const cost = () => ({ listed: fs.listed, opened: fs.opened, looks: fs.looks })
      t.ok(
        Object.values(cost()).every((count) => count < 400),
        JSON.stringify(cost()),
      )
      t.ok(fs.bytes < 8 * 2 ** 20, `${fs.bytes} bytes`)

      const repair = new Counting()
      t.match(await publishing(repair), [{ outcome: 'replaced' }])
      t.ok(repair.bytes < 8 * 2 ** 20, `${repair.bytes} bytes`)
      t.strictSame((await readPublication(new NodeFileSystem(), target))?.differences, [])
      t.match(contents(within(target, form)), files)
      t.strictSame(kept(parent), ['lock', 'record'])
      t.match(await publishing(new NodeFileSystem()), [{ outcome: 'unchanged' }])
    })
  }
}

await t.test('five thousand names beside the links of a symlink directory', async (t) => {
  const [, target] = scratchWith(t, 'certs')
  const publishing = async (fs: NodeFileSystem, more = {}) =>
    publish([directoryPublication(fs, { target, files: { ...files, ...more }, publish: 'symlink' })])
  await publishing(new NodeFileSystem())
  manyNames(5_000)(target, t)
  const fs = new Counting()
  const problems = (await readPublication(fs, target))?.differences.map(({ problem }) => problem)
  t.same(new Set(problems), new Set(['unexpected', 'more']))
  t.equal(await isGone(fs, target), false)
  t.match(await publishing(fs, { more: '' }), [{ outcome: 'replaced' }])
  t.ok(fs.listed < 4_000 && fs.looks < 1_500, JSON.stringify({ listed: fs.listed, looks: fs.looks }))
  t.equal(readdirSync(target).filter((name) => /^\.\.\d/.test(name)).length, 1, 'the old generation has gone')
  t.equal(lstatSync(join(target, 'more')).isSymbolicLink(), true)
})

for (const [what, fill] of Object.entries({ sparse, leased })) {
  await t.test(`a file that others own: ${what}`, async (t) => {
    const root = scratch(t)
    const target = join(root, 'tls.key')
    const publishing = async (fs: NodeFileSystem) => publish([filePublication(fs, target, 'key', {})])
    t.match(await publishing(new NodeFileSystem()), [{ outcome: 'created' }])
    await fill(root, t)
    const fs = new Counting()
    t.match((await readPublication(fs, target))?.differences, [{ path: '.', problem: 'content' }, { problem: 'more' }])
    t.match(await publishing(fs), [{ outcome: 'replaced' }])
    t.ok(fs.bytes < 2 ** 20, `${fs.bytes} bytes`)
    t.equal(lstatSync(target).size, 3)
  })
}

await t.test('more than one run removes: the rest goes with the next runs, and says so', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  const warnings: string[] = []
  const log = {
    info: () => {},
    debug: () => {},
    error: () => {},
    warn: (fields: object) => void warnings.push(JSON.stringify(fields)),
  }
  const publishing = async () => publish([directoryPublication(new NodeFileSystem(), { target, files, log })])
  await publishing()
  manyNames(2 * mostRemoved + 100)(target, t)
  t.match(await publishing(), [{ outcome: 'replaced' }])
  t.strictSame(kept(parent), ['lock', 'record', 'staging'])
  const notGone = /more than 20480 entries, which are gone/
  t.matchOnly(warnings, [notGone, notGone], 'at the publication, and as it is tried at once more')
  t.match(await readPublication(new NodeFileSystem(), target), { retired: true })
  t.match(await publishing(), [{ outcome: 'unchanged' }])
  t.strictSame(kept(parent), ['lock', 'record'])
  t.notOk((await readPublication(new NodeFileSystem(), target))?.retired)
})

for (const form of ['exchange', 'symlink'] as const) {
  await t.test(
    `a neighbour is published while what others filled goes, in the form ${form}; an end ends that`,
    async (t) => {
      const [parent, filled, neighbour] = scratchWith(t, 'filled', 'neighbour')
      let isLate = false
      let gone = 0
      const hand = new EventEmitter()
      class Slow extends NodeFileSystem {
        override async removeFile(...args: Parameters<NodeFileSystem['removeFile']>): Promise<void> {
          if (isLate && args[1].startsWith('file-')) {
            const going = once(hand, 'go')
            hand.emit('waits')
            await going
            gone += 1
          }
          return super.removeFile(...args)
        }
      }
      const fs = new Slow()
      const end = new AbortController()
      const removals = new Map<string, () => Promise<void>>()
      const later = (path: string, removal: () => Promise<void>) => void removals.set(path, removal)
      const publishing = (targets: string[], more = {}) =>
        publish(
          targets.map((target) =>
            directoryPublication(fs, { target, files: { ...files, ...more }, publish: form, lockTimeout: 0 }),
          ),
          end.signal,
          later,
        )
      t.match(await publishing([filled, neighbour]), [{ outcome: 'created' }, { outcome: 'created' }])
      manyNames(5_000)(within(filled, form), t)
      t.match(await publishing([filled, neighbour]), [{ outcome: 'replaced' }, { outcome: 'unchanged' }])
      t.strictSame([...removals.keys()], [filled])
      const left = () => readdirSync(parent, { recursive: true }).filter((name) => name.includes('file-')).length
      t.ok(left() > 3_900, `${left()} are left to later`)
      const keys = readdirSync(filled, { recursive: true, withFileTypes: true })
      t.equal(
        keys.filter((entry) => entry.isFile() && entry.name === 'tls.key').length,
        1,
        'no reader finds the old key',
      )

      isLate = true
      const waits = once(hand, 'waits')
      const removing = removals.get(filled)?.()
      await waits
      t.match(await publishing([neighbour], { more: '' }), [{ outcome: 'replaced' }])
      t.match(await publishing([filled]), [{ error: { reason: 'Busy' } }], 'it has the lock')
      end.abort()
      hand.emit('go')
      await removing
      t.ok(gone <= fs.callsAtATime, `${gone} were under way`)
      t.ok(left() > 3_900)
      t.match(await publish([directoryPublication(new NodeFileSystem(), { target: filled, files, publish: form })]), [
        {},
      ])
      t.equal(left(), 0, 'the next run goes on with it')
    },
  )
}

await t.test('what was read of it and changes before the exchange is kept, with all the rest', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  await publish([directoryPublication(new NodeFileSystem(), { target, files })])
  manyNames(1_000)(target, t)
  class Late extends NodeFileSystem {
    override rename(...args: Parameters<NodeFileSystem['rename']>): Promise<void> {
      if (args[4] === 'exchange') writeFileSync(join(target, 'tls.key'), 'theirs')
      return super.rename(...args)
    }
  }
  t.match(await publish([directoryPublication(new Late(), { target, files })]), [{ outcome: 'replaced' }])
  t.strictSame(kept(parent), ['foreign', 'lock', 'record'])
})

await t.test('a directory that was not published is refused by what was listed of it', async (t) => {
  const [, target] = scratchWith(t, 'certs')
  mkdirSync(target)
  manyNames(5_000)(target, t)
  const fs = new Counting()
  t.match(await publish([directoryPublication(fs, { target, files, foreign: 'same-names' })]), [
    { error: { reason: 'TargetForeign' } },
  ])
  t.ok(fs.listed < 400, `${fs.listed} listed`)
  rmSync(target, { recursive: true })
})
