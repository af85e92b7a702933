/** The refusals of a move, and the request for its old path: rules without a disk. */
import t from 'tap'
import { DurableWriteError, foreign, unfit } from '../../src/durable/errors.js'
import {
  isInPlace,
  nextTime,
  NotNow,
  refuseClaim,
  type RelocationOptions,
  requestFor,
  wordOn,
} from '../../src/durable/move/relocation-source.js'
import { claimed } from '../../src/durable/publish/claim.js'
import type { StoredRecord } from '../../src/durable/record/record.js'
import type { Pin, PublicationOptions, Relocation } from '../../src/durable/types.js'
import { silent } from '../../src/log.js'
import { failure } from './intercepted.js'
import { committed, record } from './judge-rows.js'
import { treeOf, valueOf } from './judgements.js'

const [from, to] = ['/srv/was/certs', '/srv/is/tls']
const asked: RelocationOptions = { from, keep: 0 }
const held = { reason: 'INC-1', since: 1, until: null }
const pinned: Pin = { reason: 'INC-2', since: 1, until: 'released', from: [], digest: 'a' }
const old = (marks: Partial<StoredRecord> = {}) => record(1, null, 'a', { ...committed, ...marks })
const coming = (state: Relocation['state'], path = to): Relocation => ({ from: path, as: 'removed', state, since: 1 })

/** The refusal, or the reason to wait. */
function answer(refuse: () => void): unknown {
  try {
    refuse()
    return 'goes on'
  } catch (error) {
    if (error instanceof NotNow) return error.next
    return error instanceof DurableWriteError ? error.reason : 'fails'
  }
}

await t.test('what another program publishes, or an operator holds, says nowhere that it moves', async (t) => {
  const claim = (marks: Partial<StoredRecord>, publisher?: PublicationOptions['publisher']) =>
    answer(() => refuseClaim(old(marks), { ...asked, ...(publisher && { publication: { publisher } }) }, 5))
  t.equal(claim({}), 'goes on')
  t.equal(claim({ publisher: 'install' }, 'agent'), 'TargetForeign')
  t.equal(claim({ publisher: 'agent' }, 'agent'), 'goes on')
  t.equal(claim({ hold: held }), 'Held')
  t.equal(claim({ hold: { ...held, until: 5 } }), 'goes on', 'its time is over')
  t.equal(claim({ hold: held, publisher: 'install' }, 'agent'), 'TargetForeign', 'whose it is comes first')
  t.equal(claim({ movedTo: '/elsewhere', relocation: coming('both') }), 'goes on', 'a configuration decides')
})

await t.test(
  'an agent moves what no other agent keeps, and what was let go only as long as it is unchanged',
  async (t) => {
    const claim = (marks: Partial<StoredRecord>, digest?: string) => {
      const tree = digest === undefined ? undefined : treeOf(digest)
      return answer(() => {
        t.match(claimed(from, old(marks), tree, to, 'two'), { agent: { id: 'two' }, letGo: undefined })
      })
    }
    const [agent, letGo] = [
      { id: 'one', publishedAt: 0 },
      { since: 1, publishedAt: 0 },
    ]
    t.equal(claim({ agent }), 'TargetForeign')
    t.equal(claim({ agent, movedTo: to }), 'goes on', 'it says already where it goes')
    t.equal(claim({ agent: { ...agent, id: 'two' } }, 'b'), 'goes on')
    t.equal(claim({ letGo }), 'goes on', 'it is gone')
    t.equal(claim({ letGo }, 'a'), 'goes on')
    t.equal(claim({ letGo }, 'b'), 'TargetForeign')
  },
)

await t.test('a hold keeps it as it is before a rollback does, each as long as it is in force', async (t) => {
  t.match(wordOn(from, { hold: held, pin: pinned }, 5), /is held since .*INC-1/)
  t.match(wordOn(from, { hold: { ...held, until: 5 }, pin: pinned }, 5), /is rolled back since .*INC-2/)
  t.equal(wordOn(from, { pin: { ...pinned, until: 5 } }, 5), undefined)
  t.equal(wordOn(from, {}, 5), undefined)
})

const entry = { path: '', type: 'directory', mode: 0o750, uid: 7, gid: 8, sha256: '' } as const
const file = (path: string, mode: number) => ({ ...entry, path, type: 'file' as const, mode })
const objects = [{ kind: 'Secret', namespace: 'ns', name: 'tls', uid: 'u', resourceVersion: '1', paths: [] }]

await t.test('the old path gets the new content with its own modes, owner and form', async (t) => {
  const entries = [{ ...entry, mode: 0o700 }, file('a', 0o444), file('b', 0o400), { ...entry, path: 'empty', mode: 0 }]
  const content = {
    record: old({ entries, objects }),
    files: new Map([
      ['a', Buffer.from('1')],
      ['b', Buffer.from('2')],
    ]),
  }
  const was = { entries: [entry, file('a', 0o640), { ...entry, path: 'b', mode: 0o711 }] }
  const give = (marks: Partial<StoredRecord>, options: Partial<RelocationOptions> = {}) => {
    const { confirm, supersedes, ...request } = requestFor(old({ ...was, ...marks }), content, to, {
      ...asked,
      ...options,
    })
    return { confirm, supersedes, request }
  }
  const common = {
    target: from,
    files: { a: { content: Buffer.from('1'), mode: 0o640 }, b: { content: Buffer.from('2'), mode: 0o400 } },
    mode: 0o750,
    owner: { uid: 7, gid: 8 },
    objects,
    history: { keep: 0, maxAge: null },
    lockTimeout: 0,
  }
  const { request, supersedes } = give({})
  t.match(request, common)
  t.strictSame(request.emptyDirectories, ['empty'])
  t.strictSame([request.publish, request.attributes, request.log], [undefined, undefined, undefined])
  t.equal(supersedes?.(pinned), false, 'an operator’s rollback stays')
  const linked = give({ kind: 'symlink', keepsAttributes: true }, { log: silent, lockTimeout: 9 })
  t.match(linked.request, { ...common, publish: 'symlink', attributes: 'keep', lockTimeout: 9 })
  t.equal(linked.request.log, silent)
  t.equal(linked.request.emptyDirectories, undefined)
  t.equal(give({ keepsAttributes: false }).request.attributes, undefined)
})

await t.test('the old path is given only what still says where it moves to', async (t) => {
  const { confirm } = requestFor(old(), { record: old(), files: new Map() }, to, asked)
  const asks = (found: object) => answer(() => confirm?.(found, []))
  t.equal(asks({ record: { movedTo: to }, newest: {} }), 'goes on')
  t.strictSame(asks({ record: {}, newest: { movedTo: to } }), {}, 'taken back')
  t.strictSame(asks({}), {}, 'removed')
  t.match(new NotNow(from, {}), {
    code: 'EAGAIN',
    reason: 'Busy',
    published: false,
    problem: `${from} was published or removed meanwhile`,
    message: `${from} was published or removed meanwhile; holdfast left ${from} as it was; try again`,
  })
  t.equal(new NotNow(from, { waits: 'it waits' }).problem, 'it waits')
})

await t.test(
  "isInPlace names a user, a change or an operator's word, and takes none of them for a failure",
  async (t) => {
    const refusal = (reason: DurableWriteError['reason'], published = false) =>
      new DurableWriteError('it stays', { code: 'EBUSY', syscall: 'none', path: from, reason, published })
    for (const reason of ['InUse', 'TargetForeign', 'Held', 'RolledBack'] as const) {
      t.equal(isInPlace(refusal(reason)), 'it stays', reason)
      t.equal(isInPlace(refusal(reason, true)), undefined, `${reason}, and it has left its place`)
    }
    t.equal(isInPlace(refusal('Busy')), undefined)
    t.equal(isInPlace(failure('EIO', 'openat2')), undefined)
  },
)

await t.test('once the old path has followed, what fails is waited for: it is not as it was', async (t) => {
  const replaced = { outcome: 'replaced', path: from, digest: 'b', sequence: 2 } as const
  const io = failure('EIO', 'openat2')
  const waits = (
    error: unknown,
    options: Partial<RelocationOptions> = {},
    result: typeof replaced | undefined = replaced,
  ) => valueOf(() => nextTime(error, result, { ...asked, ...options }))
  t.match(waits(io), /^could not go on: openat2 .*certs: EIO; \w/)
  t.equal(waits(foreign('it is theirs', from)), 'it is theirs', 'without advice')
  t.equal(
    waits(unfit('it is a file', { code: 'ENOTDIR', syscall: 'lstat', path: from, advice: 'move it' })),
    'it is a file; move it',
  )
  const gone = new DurableWriteError('gone', { code: 'EIO', syscall: 'none', path: from, published: true })
  t.equal(waits(gone), undefined, 'what has left its place is an error')
  t.equal(waits(io, { signal: AbortSignal.abort() }), undefined)
  t.equal(waits(io, { signal: new AbortController().signal }), waits(io))
  t.equal(
    valueOf(() => nextTime(io, undefined, asked)),
    undefined,
  )
  t.equal(
    valueOf(() => nextTime(io, { ...replaced, outcome: 'unchanged' }, asked)),
    undefined,
  )
  t.equal(
    valueOf(() => nextTime(new TypeError('a defect'), undefined, asked)),
    undefined,
    'whoever asks throws it',
  )
  t.equal(waits(new TypeError('a defect')), 'fails')
})
