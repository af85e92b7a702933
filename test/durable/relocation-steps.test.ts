/** What each call says of a move, and what each of its steps leaves where it does not go on. */
import { renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { DurableWriteError } from '../../src/durable/errors.js'
import { readPublication, replaceDirectory, replaceFile } from '../../src/durable/index.js'
import { speakingRecord } from '../../src/durable/look/snapshot.js'
import type { RelocationOptions } from '../../src/durable/move/relocation-source.js'
import { endRelocation, relocate } from '../../src/durable/move/relocation.js'
import { silent } from '../../src/log.js'
import { failure, Killed } from './intercepted.js'
import { keep, Observed, story } from './relocation-story.js'
import { contents } from './scratch.js'

/** Something happens before some of the looks at the old path; a move that never ends fails. */
class Watched extends Observed {
  looks = 0
  /** Another process holds each lock. */
  isBusy = false

  constructor(
    readonly parent: string,
    readonly act: (look: number) => void = () => undefined,
    time?: number,
  ) {
    super()
    if (time !== undefined) this.time = time
  }

  override openPath(path: string): Promise<number> {
    if (path === this.parent) this.act(++this.looks)
    return this.looks > 100 ? Promise.reject(failure('EMFILE', 'openat2')) : super.openPath(path)
  }

  override tryLock(lock: number): boolean {
    return !this.isBusy && super.tryLock(lock)
  }
}

/** Nothing uses the old path until its removal asks once more: something happens then. */
function atRemoval(act: () => Promise<never>): () => Promise<string | undefined> {
  let asked = 0
  return () => (++asked === 1 ? Promise.resolve(undefined) : act())
}

async function scene(...args: Parameters<typeof story>) {
  const told = await story(...args)
  const { from, to, fs } = told
  /** Its answer; of an error, the known state of the disk. */
  const moveBy = async (by: Observed, options: Partial<RelocationOptions> = {}) => {
    try {
      return await relocate(by, to, { from, keep, ...options })
    } catch (error) {
      if (!(error instanceof DurableWriteError)) return { fails: error instanceof Killed ? 'killed' : 'by a defect' }
      const { reason, published, message } = error
      return { reason, published, message }
    }
  }
  const watched = (act?: (look: number) => void) => new Watched(dirname(from), act, fs.time)
  const moved = (options?: Partial<RelocationOptions>) => moveBy(watched(), options)
  return { ...told, moveBy, watched, moved }
}

await t.test('relocate answers its state, and the reason for its wait', async (t) => {
  const { from, to, fs, publishNew, moved } = await scene(t)
  t.strictSame(await moved(), { waits: `${to} is not published yet` })
  await publishNew({ a: '2' })
  const began = fs.time
  const told = async () => {
    const { result, ...rest } = { result: undefined, ...(await moved()) }
    return [result?.['outcome'], rest]
  }
  const waits = `${from} stays until ${new Date(began + keep).toISOString()} at least`
  t.strictSame(await told(), ['replaced', { state: 'both', entered: 'both', waits }])
  fs.time += 1
  t.strictSame(await told(), ['unchanged', { state: 'both', waits }])
  fs.time = began + keep
  t.strictSame(await told(), ['unchanged', { state: 'done', entered: 'done' }])
  t.strictSame(await moved(), { state: 'done' })
})

await t.test('it waits for users that are no processes, and asks once more before the old path goes', async (t) => {
  const { from, publishNew, moved, state } = await scene(t)
  await publishNew({ a: '2' })
  const used = await moved({ keep: 0, usedBy: () => Promise.resolve('kubelet') })
  t.match(used, { state: 'both', waits: `${from} is in use: kubelet` })
  t.strictSame(await moved({ keep: 0, usedBy: atRemoval(() => Promise.reject(new Killed())) }), { fails: 'killed' })
  t.equal(await state(), 'draining', 'as after a kill')
  const refusal = new DurableWriteError('an agent has it', { code: 'EBUSY', syscall: 'none', path: from })
  const refused = { published: false, message: 'an agent has it' }
  t.match(await moved({ keep: 0, usedBy: atRemoval(() => Promise.reject(refusal)) }), refused)
  t.equal(await state(), 'both', 'it stays, and follows')
})

await t.test(
  'relocate reports a failure unchanged, and warns where it cannot record that the old path stays',
  async (t) => {
    const refusal = (path: string) => new DurableWriteError('an agent has it', { code: 'EBUSY', syscall: 'none', path })
    const told: string[] = []
    const log = { ...silent, warn: (_: object, message: string) => void told.push(message) }
    for (const options of [{}, { log }]) {
      const { from, publishNew, moveBy, watched } = await scene(t)
      await publishNew({ a: '1' })
      const failing = watched(() => {
        throw failure('EIO', 'openat2')
      })
      t.match(await moveBy(failing, options), {
        published: false,
        message: new RegExp(`^could not move .*EIO; holdfast left ${from} as it was`),
      })
      const fs = watched()
      const usedBy = atRemoval(() => {
        fs.isBusy = true
        return Promise.reject(refusal(from))
      })
      t.match(await moveBy(fs, { keep: 0, usedBy, ...options }), { published: false, message: 'an agent has it' })
    }
    t.strictSame(told, ['could not record that the old path stays; the next run retries'])
  },
)

await t.test(
  'after its last publication, a removal that fails is waited for, and the old path follows on',
  async (t) => {
    const { publishNew, moved, state } = await scene(t)
    await publishNew({ a: '2' })
    const usedBy = atRemoval(() => Promise.reject(failure('EIO', 'openat2')))
    t.match(await moved({ keep: 0, usedBy }), {
      state: 'both',
      entered: 'both',
      result: { outcome: 'replaced' },
      waits: /EIO/,
    })
    t.equal(await state(), 'both')
  },
)

await t.test('relocate keeps an old path that an operator keeps, against any other option', async (t) => {
  const { from, publishNew, moved } = await scene(t)
  await publishNew({ a: '2' })
  await moved({ keep: 0, usedBy: atRemoval(() => Promise.reject(new Killed())) })
  await replaceDirectory(from, { files: { a: '2' }, pin: { reason: 'INC-2', until: 'released' } })
  t.match(await moved({ keep: 0, usedBy: () => Promise.resolve('kubelet') }), {
    state: 'both',
    entered: 'both',
    waits: /rolled back since .*INC-2/,
  })
  await publishNew({ a: '3' })
  t.match(await moved(), { reason: 'RolledBack', published: false }, 'nor does it follow')
  t.same(contents(from), { a: '2' })
})

await t.test('relocate stops between two steps at the signal', async (t) => {
  const { from, publishNew, moved, state } = await scene(t)
  await publishNew({ a: '2' })
  t.strictSame(await moved({ signal: AbortSignal.abort(new Killed()) }), { fails: 'killed' })
  t.equal((await readPublication(from))?.movedTo, undefined)
  t.equal(await state(), 'staged')
})

await t.test("a move from a path with another move keeps that move's marks", async (t) => {
  const { root, from, to, fs, publishNew, moved } = await scene(t, {
    files: { a: '1' },
    movedFrom: '/before',
  })
  await publishNew({ a: '2' }, { movedTo: join(root, 'third') })
  t.match(await relocate(fs, from, { from: '/before', keep: 0 }), { state: 'done' })
  t.match(await moved(), { state: 'both' })
  t.match(await readPublication(to), { movedTo: join(root, 'third'), relocation: { from, state: 'both' } })
  t.match(await readPublication(from), { movedTo: to, relocation: { from: '/before', state: 'done' } })
})

await t.test('endRelocation ends a relocation from either end, and writes no record of another path', async (t) => {
  const { from, to, fs, publishNew, moved } = await scene(t)
  await publishNew({ a: '2' })
  await moved()
  for (const path of [from, to]) {
    await endRelocation(fs, path, {})
    const ended = await speakingRecord(fs, path)
    t.strictSame([ended?.movedTo, ended?.relocation], [undefined, undefined])
    await endRelocation(fs, path, {})
    t.equal((await speakingRecord(fs, path))?.sequence, ended?.sequence)
  }
})

await t.test(
  'done is done, unless the old path is the publisher’s own again, or still says that it moves',
  async (t) => {
    const publication = { publisher: 'agent' } as const
    const again = async (
      put: (from: string, to: string) => Promise<unknown>,
      options: Partial<RelocationOptions> = {},
    ) => {
      const { from, to, publishNew, moved } = await scene(t)
      await publishNew({ a: '2' })
      t.match(await moved({ keep: 0 }), { state: 'done' })
      await put(from, to)
      const { state, entered, reason } = {
        entered: undefined,
        state: undefined,
        reason: undefined,
        ...(await moved(options)),
      }
      return [state, entered, reason]
    }
    const files = { a: '3' }
    const done = ['done', undefined, undefined]
    t.strictSame(await again((from) => replaceFile(from, 'x', { publisher: 'agent' }), { publication }), done)
    t.strictSame(await again((from) => replaceDirectory(from, { files })), done)
    t.strictSame(await again((from) => replaceDirectory(from, { files, publisher: 'install' }), { publication }), done)
    const byOther = (from: string) => replaceDirectory(from, { files, publisher: 'agent', agent: 'one' })
    t.strictSame(await again(byOther, { publication: { ...publication, agent: 'two' } }), done)
    const both = ['both', 'both', undefined]
    t.strictSame(await again((from) => replaceDirectory(from, { files, publisher: 'agent' }), { publication }), both)
    t.strictSame(await again((from, to) => replaceDirectory(from, { files, movedTo: to })), both)
  },
)

await t.test('a disk of the old path that is gone between two looks is waited for, and nothing is lost', async (t) => {
  /** It is gone from one look to another, where two looks find that a directory is missing. */
  const gone = async (state: 'staged' | 'both', first: number, last: number) => {
    const { root, from, to, publishNew, moveBy, watched, moved } = await scene(t)
    await publishNew({ a: '1' })
    if (state === 'staged') await replaceDirectory(from, { files: { a: '0' }, movedTo: to })
    if (state === 'both') t.match(await moved(), { state })
    await publishNew({ a: '2' })
    const fs = watched((look) => {
      if (look === first) renameSync(join(root, 'was'), join(root, 'unmounted'))
      if (look === last) renameSync(join(root, 'unmounted'), join(root, 'was'))
    })
    const told = await moveBy(fs)
    if (fs.looks < last) renameSync(join(root, 'unmounted'), join(root, 'was'))
    t.match(await moved(), { state: 'both' })
    t.same(contents(from), { a: '2' })
    return 'waits' in told ? told.waits.replace(from, 'it') : told
  }
  t.match(await gone('staged', 2, 6), /^it is not there, which may change until/)
  t.equal(await gone('both', 3, 5), 'it was published or removed meanwhile')
  t.match(await gone('both', 3, 100), /^the directory of it is not there, or empty: its disk may not be mounted/)
})
