/*
 * Another program has a name that holdfast wants beside the target: for a file, a link that leads elsewhere, a directory, a fifo. It
 * publishes none the less, or refuses and changes nothing; it never follows the link, never waits for the fifo's other end.
 */
import { execFileSync } from 'node:child_process'
import { lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { contents, kept, scratch } from '../../durable/scratch.js'
import { ownPrefix } from '../judge/names.js'
import { library } from '../syscalls/distribution.js'

const { replaceDirectory, replaceFile } = await library()
const isRoot = process.geteuid?.() === 0

const kinds = {
  file: (path: string) => writeFileSync(path, 'somebody’s'),
  link: (path: string, victim: string) => symlinkSync(victim, path),
  'dangling link': (path: string, victim: string) => symlinkSync(`${victim}-not`, path),
  directory: (path: string) => {
    mkdirSync(path)
    writeFileSync(join(path, 'inside'), 'somebody’s')
  },
  fifo: (path: string) => execFileSync('mkfifo', [path]),
}

const suffixes = { lock: '.lock', record: '.1', 'next record': '.2', staging: '-0123456789abcdef' }

for (const form of ['directory', 'file'] as const) {
  for (const which of ['lock', 'record', 'next record', 'staging'] as const) {
    for (const [kind, make] of Object.entries(kinds)) {
      await t.test(`${form}: holdfast meets a ${kind} in the place of the ${which}`, async (t) => {
        const root = scratch(t)
        const [parent, victim] = [join(root, 'parent'), join(root, 'victim')]
        mkdirSync(parent)
        writeFileSync(victim, 'precious')
        const target = join(parent, 'target')
        const publish = (text: string) =>
          form === 'directory' ? replaceDirectory(target, { files: { a: text, b: text } }) : replaceFile(target, text)
        const read = () => (form === 'directory' ? contents(target) : { file: readFileSync(target, 'utf8') })
        const is = (text: string) => (form === 'directory' ? { a: text, b: text } : { file: text })
        await publish('old')
        const taken = `${ownPrefix(target)}${suffixes[which]}`
        rmSync(taken, { force: true })
        make(taken, victim)
        const before = lstatSync(victim, { bigint: true })

        const outcome = await publish('new').then(
          () => 'published',
          (error: unknown) => error as Error & { published: boolean; code: string },
        )
        if (typeof outcome === 'string') t.same(read(), is('new'), 'published')
        else {
          t.equal(outcome.name, 'DurableWriteError', outcome.stack ?? '')
          t.equal(outcome.published, false)
          t.same(read(), is('old'), `refused with ${outcome.code}, and unchanged`)
          t.match(outcome.message, /as it was|nothing was changed/)
        }
        t.equal(readFileSync(victim, 'utf8'), 'precious')
        t.equal(lstatSync(victim, { bigint: true }).ctimeNs, before.ctimeNs, 'the link is not followed')
        t.throws(() => lstatSync(`${victim}-not`), { code: 'ENOENT' }, 'nor does it lead to something new')

        // The owner removes it again. holdfast works around a taken record's name, and leaves its owner alone.
        const avoided = which.endsWith('record') && kind !== 'file'
        if (avoided) t.ok(lstatSync(taken), 'what is somebody else’s is still there')
        if (avoided || outcome !== 'published') rmSync(taken, { recursive: true, force: true })
        await publish('newer')
        t.same(read(), is('newer'))
        t.same(kept(parent), ['lock', 'record'])
      })
    }
  }
}

await t.test('a lock that another user owns', { skip: isRoot ? false : 'needs root (chown)' }, async (t) => {
  const parent = scratch(t)
  const lock = `${ownPrefix(join(parent, 'target'))}.lock`
  writeFileSync(lock, '')
  execFileSync('chown', ['1:1', lock])
  await t.rejects(replaceFile(join(parent, 'target'), 'new'), { code: 'EPERM', published: false })
})
