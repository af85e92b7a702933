/*
 * ext4 with inodes of 128 bytes, as mke2fs made them on small disks: no time of birth, and times of whole seconds. What elsewhere proves
 * that nothing has changed proves nothing there.
 */
import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { publish } from '../../src/durable/publish/publish.js'
import { directoryPublication, replaceDirectory, replaceFile } from '../../src/durable/publish/replace.js'
import { FileStability, scanDirectory } from '../../src/objects/files/directory-scan.js'
import { fingerprint, readRegularFile } from '../../src/regular-file.js'
import { intercepted } from './intercepted.js'
import { mounted, noLoop } from './loop-disk.js'
import { contents } from './scratch.js'

const skip = noLoop('mkfs.ext4')
const small = ['mkfs.ext4', '-q', '-I', '128']

/** Waits for the first half of a second, so that what follows at once is of the same one. */
async function earlyInASecond(): Promise<void> {
  const into = Date.now() % 1000
  if (into > 500) await sleep(1010 - into)
}

await t.test('on whole seconds', { skip }, async (t) => {
  const at = mounted(t, small, 128)
  const outcome = async (target: string, content: string) =>
    (await replaceDirectory(target, { files: { key: content } })).outcome

  await t.test('such a file system is not proven, and keeps the numbers of its inodes', async (t) => {
    const fs = new NodeFileSystem()
    const directory = await fs.openPath(at)
    t.match(await fs.mount(directory), { type: 'ext4', proven: false, lasting: true })
    await fs.close(directory)
    t.match(await replaceDirectory(join(at, 'told'), { files: {} }), { unproven: true })
  })

  await t.test('a copy that has the number of the published inode is published anew', async (t) => {
    const [target, copy] = [join(at, 'copied'), join(at, 'copy')]
    t.equal(await outcome(target, 'content'), 'created')
    const { ino } = statSync(target)
    cpSync(target, copy, { recursive: true, preserveTimestamps: true })
    rmSync(target, { recursive: true })
    cpSync(copy, target, { recursive: true, preserveTimestamps: true })
    t.equal(statSync(target).ino, ino, 'no fsync has reached it')
    t.equal(await outcome(target, 'content'), 'replaced')
    t.equal(await outcome(target, 'content'), 'replaced', 'nor does a record of an inode without a birth prove more')
  })

  await t.test('a source that is written while it is read gives no mixture', async (t) => {
    const [source, target] = [join(at, 'source'), join(at, 'target')]
    const half = 4 * 2 ** 20
    const of = (letter: string): string => letter.repeat(2 * half)
    class Written extends NodeFileSystem {
      override async *read(...args: Parameters<NodeFileSystem['read']>) {
        let bytes = 0
        for await (const piece of super.read(...args)) {
          yield piece
          bytes += piece.length
          if (bytes === half) writeFileSync(source, of('b'))
        }
      }
    }
    await earlyInASecond()
    writeFileSync(source, of('a'))
    await t.rejects(replaceFile(target, { path: source }, {}, new Written()), { message: /another program changed/ })
    t.equal((await replaceFile(target, { path: source })).outcome, 'created', 'at rest')
    t.equal(readFileSync(target, 'utf8'), of('b'))
  })

  await t.test('a file that is read whole gives no mixture', async (t) => {
    const source = join(at, 'whole')
    for (let round = 0; round < 3; round += 1) {
      await earlyInASecond()
      writeFileSync(source, 'a'.repeat(2 ** 24))
      const reading = readRegularFile(source, 2 ** 24, { steady: true }).then(
        (bytes) => new Set(bytes).size,
        () => 1,
      )
      await sleep(2)
      writeFileSync(source, 'b'.repeat(2 ** 24))
      t.equal(await reading, 1)
    }
  })

  await t.test('what another program writes to the old content in the same second is kept', async (t) => {
    const target = join(at, 'written')
    await earlyInASecond()
    await outcome(target, 'first')
    const { fs } = intercepted((call, args) => {
      if (call === 'rename' && args.at(-1) === 'exchange') writeFileSync(join(target, 'key'), 'other')
    })
    t.equal((await replaceDirectory(target, { files: { key: 'second' } }, fs)).outcome, 'replaced')
    t.strictSame(contents(target), { key: 'second' })
    const foreign = () => readdirSync(at).filter((name) => name.endsWith('.foreign'))
    t.strictSame(
      foreign().map((name) => contents(join(at, name))),
      [{ key: 'other' }],
    )
    for (const name of foreign()) rmSync(join(at, name), { recursive: true })
    t.equal(await outcome(target, 'third'), 'replaced')
    t.strictSame(foreign(), [], 'what nobody has written to goes')
  })

  await t.test('a check that changes the new content in the second of its staging is found out', async (t) => {
    const target = join(at, 'checked')
    const check = {
      accepts: () => {},
      examine: async ({ directory }: { readonly directory: string }) => writeFileSync(join(directory, 'key'), 'other'),
    }
    await earlyInASecond()
    const request = { target, files: { key: 'asked' }, check }
    const [done] = await publish([directoryPublication(new NodeFileSystem(), request)])
    t.match(done, { error: { reason: 'ContentRejected' } })
  })

  await t.test('a second change in one second gives a file another fingerprint', async (t) => {
    const file = join(at, 'config.yaml')
    await earlyInASecond()
    writeFileSync(file, 'a')
    const before = await fingerprint(file)
    writeFileSync(file, 'b')
    t.not(await fingerprint(file), before)
    await sleep(1100)
    t.equal(await fingerprint(file), await fingerprint(file), 'later it stays the same')
  })

  await t.test('an object’s file has come to rest only once another change would show', async (t) => {
    const directory = join(at, 'objects')
    await outcome(directory, '')
    const file = join(directory, 'a.yaml')
    const stability = new FileStability(50, 10_000)
    const look = async () => {
      const { stamps, startedAt } = await scanDirectory(directory)
      const stamp = stamps.get('a.yaml')
      return stamp && { id: stamp.id, state: stability.state('a.yaml', stamp, startedAt) }
    }
    let settled: string | undefined
    await earlyInASecond()
    writeFileSync(file, 'a')
    while (settled === undefined) {
      await sleep(60)
      const seen = await look()
      if (seen?.state === 'stable') settled = seen.id
    }
    writeFileSync(file, 'b')
    t.not((await look())?.id, settled)
  })
})
