/** A check examines the staged content: before any of it is durable or visible, once for one content, and without changing it. */
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { DurableWriteError } from '../../../src/durable/errors.js'
import { examineStaged } from '../../../src/durable/publish/examine.js'
import type { Attributes } from '../../../src/durable/file-system.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { publish } from '../../../src/durable/publish/publish.js'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import type { ContentCheck, StagedContent } from '../../../src/durable/types.js'
import { intercepted } from '../intercepted.js'
import { contents, scratch, scratchWith } from '../scratch.js'

const forms = ['exchange', 'symlink'] as const
const files = { conf: 'new', 'below/key': 'key' }

function scene(t: Test, form: (typeof forms)[number]) {
  const [parent, target] = scratchWith(t, 'web')
  const calls: string[] = []
  const run = async (
    files: Record<string, string>,
    examine: (content: StagedContent) => void,
    { accepts = () => {}, signal }: { accepts?: ContentCheck['accepts']; signal?: AbortSignal } = {},
  ) => {
    calls.length = 0
    const { fs } = intercepted((call) => void calls.push(call))
    const check = {
      accepts,
      examine: async (content: StagedContent) => {
        await Promise.resolve()
        examine(content)
      },
    }
    const [outcome] = await publish([directoryPublication(fs, { target, files, publish: form, check })], signal)
    return outcome
  }
  return { parent, target, calls, run }
}

for (const form of forms) {
  await t.test(`${form}: a check examines the new content before any of it is synced or visible`, async (t) => {
    const { target, calls, run } = scene(t, form)
    for (const version of ['1', '2']) {
      let seen: StagedContent | undefined
      const result = await run({ ...files, conf: version }, (content) => {
        seen = content
        t.strictSame(contents(content.directory), { conf: version, 'below/key': 'key' })
        t.notOk(calls.includes('sync'))
        t.equal(existsSync(target) && readFileSync(join(target, 'conf'), 'utf8'), version === '1' ? false : '1')
      })
      t.match(seen, { target, digest: /^sha256:/ })
      t.match(result, { outcome: version === '1' ? 'created' : 'replaced', digest: seen?.digest })
      t.equal(readFileSync(join(target, 'conf'), 'utf8'), version)
    }
    t.match(await run({ ...files, conf: '2' }, () => t.fail('it is published already')), { outcome: 'unchanged' })
  })

  await t.test(`${form}: a rejection leaves the target unchanged, and nothing beside it`, async (t) => {
    const { parent, target, calls, run } = scene(t, form)
    await run(files, () => {})
    const before = [readdirSync(parent).sort(), readdirSync(target).sort()]
    const reason = 'ContentRejected'
    const error = new DurableWriteError('no', { code: 'EINVAL', syscall: 'none', path: target, reason })
    const rejecting = () => {
      throw error
    }
    t.strictSame(await run({ conf: 'bad' }, rejecting), { error })
    t.strictSame([readdirSync(parent).sort(), readdirSync(target).sort()], before)
    t.strictSame(await run({ conf: 'bad' }, () => t.fail('known to be bad'), { accepts: rejecting }), { error })
    t.notOk(calls.includes('createDirectory'), 'it is not even staged')
    t.equal(readFileSync(join(target, 'conf'), 'utf8'), 'new')
    const abort = new AbortController()
    const ending = () => {
      abort.abort()
      throw new Error('ended')
    }
    t.match(await run({ conf: '3' }, ending, { signal: abort.signal }), {
      error: { code: 'ABORT_ERR', published: false },
    })
    t.strictSame([readdirSync(parent).sort(), readdirSync(target).sort()], before)
  })
}

/** What a careless command does to the content that it examines, and which path then differs. */
const changes: readonly [string, (directory: string) => void, string][] = [
  ['other bytes, as many as before', (at) => writeFileSync(join(at, 'conf'), 'NEW'), '"conf"'],
  ['the same bytes', (at) => writeFileSync(join(at, 'below/key'), 'key'), '"below/key"'],
  ['a new file', (at) => writeFileSync(join(at, 'below/cache'), ''), '"below"'],
  [
    'a directory that comes and goes',
    (at) => {
      mkdirSync(join(at, 'x'))
      rmSync(join(at, 'x'), { recursive: true })
    },
    'the directory itself',
  ],
  ['another mode', (at) => chmodSync(join(at, 'conf'), 0o644), '"conf"'],
  ['another name for a file', (at) => linkSync(join(at, 'conf'), join(at, '../kept')), '"conf"'],
  ['another file by its name', (at) => renameSync(join(at, 'conf'), join(at, 'below/key')), 'the directory itself'],
]

for (const [what, change, path] of changes) {
  await t.test(`what examines the content may not change it: ${what}`, async (t) => {
    const { target, run } = scene(t, 'exchange')
    await run({ conf: 'old' }, () => {})
    t.match(await run(files, ({ directory }) => change(directory)), {
      error: {
        reason: 'ContentRejected',
        published: false,
        message: `what examined the new content of ${target} has changed it: ${path}; holdfast left ${target} as it was; let it read, and write elsewhere`,
      },
    })
    t.strictSame(contents(target), { conf: 'old' })
  })
}

/** A file system that answers other attributes of staged entries; `examine` runs the check, and answers its error. */
class Told extends NodeFileSystem {
  constructor(
    private readonly says: (found: Attributes, name: string) => Partial<Attributes>,
    private readonly time = 0,
  ) {
    super()
  }
  override now(): number {
    return this.time
  }
  override async look(...args: Parameters<NodeFileSystem['look']>): Promise<Attributes | undefined> {
    const found = await super.look(...args)
    return found && { ...found, ...this.says(found, args[1]) }
  }
  override async attributes(descriptor: number): Promise<Attributes> {
    const found = await super.attributes(descriptor)
    return { ...found, ...this.says(found, '') }
  }
  async examine(directory: string, examine: () => void | Promise<void>): Promise<string> {
    const descriptor = await this.openPath(directory)
    const examined = { fs: this, path: '/target', site: { realPath: `${directory}/target` } }
    const check: ContentCheck = { accepts: () => {}, examine: async () => examine() }
    const [, failure = ''] = await examineStaged(examined, { path: 'x', descriptor }, 'sha256:', check).then(
      () => [],
      (error: unknown) => [undefined, error instanceof DurableWriteError ? error.problem : 'a mistake'],
    )
    await this.close(descriptor)
    return failure.slice(failure.lastIndexOf(': ') + 2)
  }
}

await t.test('a change is seen by its inode, its size or its name, too, where no time tells it', async (t) => {
  const directory = scratch(t)
  const at = (name: string): string => join(directory, name)
  for (const name of ['a', 'b', 'c', 'd']) writeFileSync(at(name), name)
  const blind = new Told(({ type, size }) => ({ changed: 1n, ...(type === 'directory' ? { size: 0 } : { size }) }))
  t.equal(await blind.examine(directory, () => {}), '')
  const swap = (): void => {
    writeFileSync(at('new'), 'x')
    renameSync(at('new'), at('b'))
  }
  t.equal(await blind.examine(directory, swap), '"b"', 'another inode')
  t.equal(await blind.examine(directory, () => writeFileSync(at('c'), 'longer')), '"c"', 'more bytes')
  t.equal(await blind.examine(directory, () => rmSync(at('d'))), '"d"', 'it is gone')
  t.equal(await blind.examine(directory, () => writeFileSync(at('e'), '')), '"e"', 'it is new')
})

await t.test("examineStaged waits for the next tick of the file system's clock after the stage", async (t) => {
  const directory = scratch(t)
  for (const name of ['a', 'b', 'c']) writeFileSync(join(directory, name), '')
  const staged = 1_800_000_000_000
  const says = (_: Attributes, name: string): Partial<Attributes> => ({
    changed: BigInt(name === 'b' ? staged : 1) * 1_000_000n,
  })
  let began = 0
  let waited = 0
  const examine = (): void => void (waited = performance.now() - began)
  for (const now of [staged, staged + 20, staged - 20]) {
    began = performance.now()
    await new Told(says, now).examine(directory, examine)
    // A timer may come a millisecond early.
    t.ok(waited >= 19, `${waited} ms at ${now - staged}`)
  }
})
