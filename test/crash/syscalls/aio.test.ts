/*
 * Linux's AIO, refused, interrupted, partial, and failing: a barrier succeeds only after the sync of every file and directory, and a lost
 * completion is a failure.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { kept, scratch, scratchWith } from '../../durable/scratch.js'
import { environment, executable, native, program } from './distribution.js'
import { type Traced, traced } from './traced.js'

const strace = spawnSync('strace', ['-V']).status === 0 ? false : 'needs strace'

interface Result {
  readonly outcome?: string
  readonly code?: string
  readonly published?: boolean
  readonly message?: string
  readonly descriptors: number
}

interface Watched {
  readonly results: readonly Result[]
  readonly run: Traced
  readonly parent: string
  /** Names below the parent that were synced successfully, staging's own name taken out. */
  readonly synced: readonly string[]
}

/** Publishes as a new process under strace, which watches its AIO and fsync calls, with a fault among them. */
async function publish(
  t: Test,
  { rounds = 1, files = 2, inject = [] }: { rounds?: number; files?: number; inject?: readonly string[] },
): Promise<Watched> {
  const [root, parent] = scratchWith(t, 'parent')
  mkdirSync(parent)
  const here = (name: string): string => program(new URL(name, import.meta.url))
  const publisher = { hold: here('hold.js'), executable: here('publisher.js'), scratch: root }
  const run = await traced(publisher, [join(parent, 'certs'), `${rounds}`, `${files}`], {
    thread: 'all',
    strace: [
      ...['-e', 'abbrev=none', '-s', '4096', '-e', 'trace=io_setup,io_submit,io_getevents,fsync'],
      ...inject.flatMap((fault) => ['-e', `inject=${fault}`]),
    ],
  })
  t.equal(run.code, 0, run.stderr)
  const results = JSON.parse(run.stdout) as Result[]
  const paths = [
    ...[...run.log.matchAll(/fsync\(\d+<([^>]*)>\)\s+= 0/g)].map(([, path = '']) => path),
    ...[...run.log.matchAll(/io_submit\(.*= \d+/g)].flatMap(([line]) =>
      [...line.matchAll(/aio_fildes=\d+<([^>]*)>/g)].map(([, path = '']) => path),
    ),
  ]
  const synced = paths.map((path) =>
    path
      .slice(parent.length)
      .replace(/\.holdfast-[0-9a-f]{16}-[0-9a-f]{16}/, 'STAGING')
      .replace(/\.holdfast-[0-9a-f]{16}\.\d+/, 'RECORD'),
  )
  return { results, run, parent, synced }
}

const calls = (log: string, call: string): number => log.split(`${call}(`).length - 1

function whole(t: Test, { parent }: Watched, round: number, files = 2): void {
  const names = readdirSync(join(parent, 'certs'))
  t.equal(names.length, files)
  const wrong = names.filter((name) => readFileSync(join(parent, 'certs', name), 'utf8') !== `${name} of ${round}`)
  t.same(wrong, [], `all of round ${round}`)
  t.same(kept(parent), ['lock', 'record'])
}

const everything = (files: number): string[] =>
  [...Array.from({ length: files }, (_, index) => `/STAGING/file-${index}`), '/RECORD', '/STAGING', ''].sort()

for (const code of ['ENOSYS', 'EPERM', 'EAGAIN']) {
  await t.test(`io_setup refused with ${code}: threads`, { skip: strace }, async (t) => {
    const watched = await publish(t, { rounds: 2, inject: [`io_setup:error=${code}:when=1`] })
    t.same(
      watched.results.map(({ outcome }) => outcome),
      ['created', 'replaced'],
    )
    whole(t, watched, 2)
    for (const name of everything(2)) t.ok(watched.synced.includes(name), `${name || 'the parent'} is synced`)
    const { log } = watched.run
    t.ok(calls(log, 'fsync') >= 6, 'by threads')
    t.equal(calls(log, 'io_setup') > 1, code === 'EAGAIN', 'a full table may empty, the rest is not asked again')
  })
}

for (const code of ['ENOSYS', 'EPERM']) {
  await t.test(`io_submit refused with ${code}: threads`, { skip: strace }, async (t) => {
    const watched = await publish(t, { inject: [`io_submit:error=${code}:when=1+`] })
    t.equal(watched.results[0]?.outcome, 'created', watched.results[0]?.message ?? '')
    whole(t, watched, 1)
    for (const name of everything(2)) t.ok(watched.synced.includes(name), `${name || 'the parent'} is synced`)
  })
}

await t.test('io_getevents interrupted, again and again', { skip: strace }, async (t) => {
  const watched = await publish(t, { rounds: 2, inject: ['io_getevents:error=EINTR:when=1+2'] })
  t.same(
    watched.results.map(({ outcome }) => outcome),
    ['created', 'replaced'],
  )
  whole(t, watched, 2)
  t.ok(calls(watched.run.log, 'io_getevents') >= 8, 'asked again each time')
})

await t.test(
  'a barrier whose completions are lost publishes nothing, and believes no stale one',
  { skip: strace },
  async (t) => {
    const watched = await publish(t, { rounds: 3, inject: ['io_getevents:error=EIO:when=3'] })
    t.match(watched.results, [{ outcome: 'created' }, { code: 'EIO', published: false }, { outcome: 'replaced' }])
    whole(t, watched, 3)
    const contexts = [...watched.run.log.matchAll(/io_submit\((0x[0-9a-f]+)/g)].map(([, context]) => context)
    t.equal(calls(watched.run.log, 'io_setup'), 2, 'a context of its own for what came after')
    t.not(contexts[0], contexts.at(-1))
  },
)

await t.test('completions lost after the exchange: visible, durability unknown', { skip: strace }, async (t) => {
  const watched = await publish(t, { rounds: 3, inject: ['io_getevents:error=EIO:when=4'] })
  t.match(watched.results, [{ outcome: 'created' }, { code: 'EIO', published: true }, { outcome: 'replaced' }])
  whole(t, watched, 3)
})

const many = 1000

/** Node loads the separate files of a build side by side, and holds some 80 open; the bundle, which users have, starts with 48. */
const fewDescriptors = 128
await t.test(`${many} files`, { skip: strace }, async (t) => {
  const watched = await publish(t, { files: many })
  t.equal(watched.results[0]?.outcome, 'created', watched.results[0]?.message ?? '')
  whole(t, watched, 1, many)
  const synced = new Set(watched.synced)
  t.same(
    everything(many).filter((name) => !synced.has(name)),
    [],
    'every file, the record, staging and the parent',
  )
})

await t.test(`${many} files, and a full ring`, { skip: strace }, async (t) => {
  const watched = await publish(t, { files: many, inject: ['io_submit:error=EAGAIN:when=2+3'] })
  // A ring that is full with nothing in flight is none of Linux's: then it is a failure as any other.
  if (watched.results[0]?.code === 'EAGAIN') {
    t.equal(watched.results[0].published, false)
    t.same(kept(watched.parent), ['lock'])
    return
  }
  t.equal(watched.results[0]?.outcome, 'created', watched.results[0]?.message ?? '')
  whole(t, watched, 1, many)
  t.ok(watched.run.log.includes('EAGAIN'))
  const synced = new Set(watched.synced)
  t.same(
    everything(many).filter((name) => !synced.has(name)),
    [],
    'all of them none the less',
  )
})

for (const [name, env] of [
  ['AIO', {}],
  ['threads', { HOLDFAST_AIO: 'off' }],
] as const) {
  await t.test(`${many} files with ${fewDescriptors} descriptors, ${name}`, async (t) => {
    const root = scratch(t)
    const [from, parent] = [join(root, 'from'), join(root, 'parent')]
    for (const path of [from, parent]) mkdirSync(path)
    for (let index = 0; index < many; index++) writeFileSync(join(from, `file-${index}`), `${index}`)
    const command = [process.execPath, executable(root), 'replace', join(parent, 'certs'), '--from', from]
    const child = spawn('prlimit', [`--nofile=${fewDescriptors}`, ...command], {
      env: { ...environment, ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk))
    t.same(await once(child, 'close'), [0, null], stderr)
    t.equal(readdirSync(join(parent, 'certs')).length, many)
    t.same(kept(parent), ['lock', 'record'])
  })
}

await t.test('a bad descriptor among good ones', async (t) => {
  const { AioContext } = await native()
  const root = scratch(t)
  const context = AioContext.create()
  const files = ['a', 'b', 'c', 'd'].map((name) => openSync(join(root, name), 'w'))
  const [a = -1, b = -1, c = -1, d = -1] = files
  const closed = openSync(join(root, 'e'), 'w')
  closeSync(closed)
  const codes = async (descriptors: number[]): Promise<(string | undefined)[]> =>
    (await context.sync(descriptors)).map((outcome) => outcome?.code)
  t.same(await codes([a, b, closed, c, closed, d]), [undefined, undefined, 'EBADF', undefined, 'EBADF', undefined])
  t.same(await codes([closed, a]), ['EBADF', undefined], 'at the beginning')
  t.same(await codes([a, closed]), [undefined, 'EBADF'], 'at the end')
  t.same(await codes([d, c, b, a]), [undefined, undefined, undefined, undefined], 'nothing stale is left')
  for (const file of files) closeSync(file)
})
