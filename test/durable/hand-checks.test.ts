/** What a person who moves a directory by hand is told: what to do about that for which it waits, and what was left. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Descriptor, Mount } from '../../src/durable/file-system.js'
import { leftAt, refuseGone, refuseLess, withAdvice } from '../../src/durable/hand-checks.js'
import { setHold } from '../../src/durable/index.js'
import { notWhole } from '../../src/durable/old-path.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import type { RelocationProgress } from '../../src/durable/relocation.js'
import { failure, intercepted } from './intercepted.js'
import { story } from './relocation-story.js'
import { scratch } from './scratch.js'

await t.test('what to do about that for which a move waits', async (t) => {
  const { from, to, fs } = await story(t)
  const adviceOn = async (progress: RelocationProgress): Promise<unknown> => {
    const { advice, ...rest } = await withAdvice(fs, from, to, progress)
    t.strictSame(rest, progress)
    return advice
  }
  const waits = 'it waits'
  t.equal(await adviceOn({ state: 'both' }), undefined, 'it waits for nothing')
  t.equal(await adviceOn({ state: 'staged', waits }), undefined)
  t.equal(await adviceOn({ waits }), 'publish it again', 'the new path holds nothing that is durable')
  t.equal(await adviceOn({ state: 'both', waits: notWhole(to) }), 'publish it again')
  t.equal(await adviceOn({ state: 'both', waits: notWhole(from) }), `have its users open ${to}`)
  t.equal(await adviceOn({ state: 'both', waits }), `have its users open ${to}`)
  await setHold(from, { reason: '', since: 1, until: null })
  t.equal(await adviceOn({ state: 'both', waits }), `run "holdfast release ${from}"`)
  const { fs: failing } = intercepted(() => {
    throw failure('EIO', 'openat2')
  })
  const alone = await withAdvice(failing, from, to, { waits }).catch((error: unknown) => error)
  t.strictSame(alone, { waits, advice: 'publish it again' }, 'which no disk of the old path need be asked for')
  rmSync(join(from, '..'), { recursive: true })
  t.equal(await adviceOn({ state: 'both', waits }), 'mount its disk')
})

await t.test('a move has left nothing, or its own link: what somebody has put there is said', async (t) => {
  const root = scratch(t)
  const [from, to] = [join(root, 'was/certs'), join(root, 'is/tls')]
  const fs = new NodeFileSystem()
  t.equal(await leftAt(fs, from, to), 'removed', 'not even the directory above')
  mkdirSync(join(root, 'was'))
  t.equal(await leftAt(fs, from, to), 'removed')
  writeFileSync(from, 'theirs')
  await t.rejects(leftAt(fs, from, to), {
    reason: 'TargetForeign',
    message: `${from} is not what holdfast left there when it moved to ${to}; nothing was changed; see what it is, and move it away`,
  })
})

await t.test('a move that is done is not said to be done once its content is gone', async (t) => {
  const root = scratch(t)
  const [from, to] = [join(root, 'was/certs'), join(root, 'tls')]
  await t.rejects(refuseGone(new NodeFileSystem(), from, to), {
    ...{ code: 'ENOENT', path: to },
    message: `${from} has moved to ${to}, and is not there any more; nothing was changed; put it back, or publish it again`,
  })
  writeFileSync(to, '')
  await t.resolves(refuseGone(new NodeFileSystem(), from, to))
})

await t.test('what is durable does not go for a copy that is perhaps not', async (t) => {
  const root = scratch(t)
  for (const name of ['was', 'is']) mkdirSync(join(root, name))
  class Disks extends NodeFileSystem {
    constructor(readonly proven: readonly [boolean, boolean]) {
      super()
    }
    #looks = 0
    override async mount(directory: Descriptor): Promise<Mount> {
      const proven = this.proven[this.#looks++] === true
      return { ...(await super.mount(directory)), type: proven ? 'ext4' : 'nfs4', proven }
    }
  }
  const [from, to] = [join(root, 'was/certs'), join(root, 'is/tls')]
  await t.rejects(refuseLess(new Disks([true, false]), from, to), {
    ...{ code: 'ENOTSUP', path: to, reason: 'TargetUnfit' },
    problem: `${from} is on ext4, where durability is proven, and ${to} is on nfs4, where it is not`,
    advice: 'choose a new path on such a file system; to give up the durable copy, use --force',
  })
  await t.resolves(refuseLess(new Disks([false, false]), from, to), 'it was not durable before')
})
