/**
 * Version 0.2.0 could leave a symbolic link where a directory had been (`movedFromAs: link`). holdfast still reads its records of such
 * links: a move ends without one, an existing link stays for its user, and nothing goes that may be another program's.
 */
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync } from 'node:fs'
import { symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { readPublication, replaceDirectory } from '../../src/durable/index.js'
import { relocate } from '../../src/durable/move/relocation.js'
import { namesFor } from '../../src/durable/path/names.js'
import { encodeRecord, type RecordBody } from '../../src/durable/record/record.js'
import { wholeLines } from '../../src/checked-lines.js'
import { removePublished } from '../../src/durable/remove/removal.js'
import { intercepted, Killed } from './intercepted.js'
import { keep, stagingIn, story } from './relocation-story.js'
import { contents, kept } from './scratch.js'

const text = '../is/tls'

/** What a target's newest record says. */
function recordOf(target: string): { file: string; body: RecordBody; rest: string[] } {
  const names = namesFor(basename(target))
  const sequences = readdirSync(dirname(target)).flatMap((name) => names.sequenceOf(name) ?? [])
  const file = join(dirname(target), names.record(Math.max(...sequences)))
  const written = readFileSync(file, 'utf8')
  return { file, body: wholeLines(written)[0] as RecordBody, rest: written.split('\n').slice(1) }
}

/** The same record, as 0.2.0 wrote it of a move that leaves a link. */
function asWrittenBefore(target: string, more: Partial<RecordBody> = {}): void {
  const { file, body, rest } = recordOf(target)
  const relocation = body.relocation && { ...body.relocation, as: 'link' as const }
  const line = Buffer.from(encodeRecord({ ...body, ...(relocation && { relocation }), ...more })).toString()
  writeFileSync(file, `${line}${rest.join('\n')}`)
}

/** A move that 0.2.0 has begun, and whose old path is not used any more. */
async function begun(t: Test) {
  const scene = await story(t)
  await scene.publishNew({ a: '2' })
  t.match(await scene.move(), { state: 'both' })
  scene.fs.time += keep
  asWrittenBefore(scene.to)
  return { ...scene, was: join(scene.root, 'was') }
}

/**
 * The same, killed in its removal. `where` the link is: still staged, the directory in its place; in the place of the directory, which has
 * the staging name; the same, with nothing left beside it but its record; or on its way out, under the staging name again.
 */
async function killed(t: Test, where: 'staged' | 'there' | 'left' | 'going') {
  const scene = await begun(t)
  const { from, to, was } = scene
  const { fs: mortal } = intercepted((call, args) => {
    if (call === 'removeFile' && args[1] === 'a' && !existsSync(from)) throw new Killed()
  }, scene.fs)
  await t.rejects(relocate(mortal, to, { from, keep }))
  const staging = join(was, stagingIn(was))
  const { body } = recordOf(from)
  symlinkSync(text, from)
  const staged = lstatSync(from).ino.toString()
  const removing = { since: scene.fs.time, link: text }
  asWrittenBefore(from, { removing, ...(body.staging && { staging: { ...body.staging, staged } }) })
  asWrittenBefore(to)
  t.match(await readPublication(to), { relocation: { state: 'draining', as: 'link' } })
  if (where === 'staged') {
    renameSync(from, join(scene.root, 'link'))
    renameSync(staging, from)
    renameSync(join(scene.root, 'link'), staging)
  }
  if (where === 'left' || where === 'going') rmSync(staging, { recursive: true })
  if (where === 'going') renameSync(from, staging)
  return { ...scene, staging }
}

/** What a removal found under its name, and could not be certain of: how it is called now. */
const quarantined = (directory: string): string[] =>
  readdirSync(directory)
    .filter((name) => name.endsWith('.foreign'))
    .map((name) => readlinkSync(join(directory, name)))

await t.test('a move that was to leave a link leaves none, and 0.2.0 can read how far it has come', async (t) => {
  const { from, to, was, move, publishNew } = await begun(t)
  t.equal((await readPublication(to))?.relocation?.as, 'link')
  await publishNew({ a: '3' })
  t.equal((await readPublication(to))?.relocation?.as, 'link', 'a publication carries on what it does not ask for')
  t.match(await move(), { state: 'done', entered: 'done' })
  t.same([existsSync(from), kept(was)], [false, ['lock']])
  t.equal(recordOf(to).body.relocation?.as, 'removed')
})

for (const remove of ['the move', 'holdfast remove'] as const) {
  const goOn = async ({ from, fs, move }: Awaited<ReturnType<typeof killed>>, t: Test): Promise<void> => {
    if (remove === 'holdfast remove') await removePublished(fs, from, {})
    t.match(await move(), { state: 'done' })
  }

  await t.test(`killed with the link in the place of the directory: it stays (${remove})`, async (t) => {
    const scene = await killed(t, 'there')
    await goOn(scene, t)
    t.equal(readlinkSync(scene.from), text)
    t.same([kept(scene.was), contents(scene.to)], [['lock'], { a: '2' }], 'no old key is left, and no record')
  })

  await t.test(
    `killed before that: the directory goes, and a link of uncertain origin stays (${remove})`,
    async (t) => {
      const scene = await killed(t, 'staged')
      await goOn(scene, t)
      t.equal(existsSync(scene.from), false)
      t.same(quarantined(scene.was), [text])
      t.same(readdirSync(scene.was).length, 2, 'with the lock')
    },
  )

  await t.test(`killed while the link was taken away: the same (${remove})`, async (t) => {
    const scene = await killed(t, 'going')
    await goOn(scene, t)
    t.equal(existsSync(scene.from), false)
    t.same(quarantined(scene.was), [text])
    t.same(readdirSync(scene.was).length, 2, 'with the lock')
  })
}

await t.test('the directory does not come back over the link while a process uses it', async (t) => {
  const { from, fs, staging, was } = await killed(t, 'there')
  const used = removePublished(fs, from, { usedBy: () => Promise.resolve('the static pod web mounts it') })
  await t.rejects(used, { reason: 'TargetForeign', published: true, message: /somebody made .*was\/certs meanwhile/ })
  t.same([readlinkSync(from), contents(staging)], [text, { a: '2' }])
  await removePublished(fs, from, {})
  t.same([readlinkSync(from), kept(was)], [text, ['lock']])
})

await t.test('a link that was left is a user’s: it is in the way, and goes by hand', async (t) => {
  const { from, to, fs, was, move } = await killed(t, 'left')
  t.match(await move(), { state: 'done', entered: 'done' })
  t.match(await move(), { state: 'done', entered: undefined })
  t.equal(readlinkSync(from), text)
  const publishOld = () => replaceDirectory(from, { files: { a: '4' }, movedTo: null })
  await t.rejects(publishOld(), { code: 'ELOOP', published: false, message: /certs is a symbolic link/ })
  t.equal(readlinkSync(from), text)
  rmSync(from)
  t.match(await publishOld(), { outcome: 'created' })
  t.same([contents(from), contents(to), kept(was)], [{ a: '4' }, { a: '2' }, ['lock', 'record']])
  t.match(await readPublication(from), { removing: undefined })
  await removePublished(fs, from, {})
})

await t.test('a link that was left beside its record: the record goes, and the link stays', async (t) => {
  const { from, fs, was } = await killed(t, 'left')
  await removePublished(fs, from, {})
  t.same([readlinkSync(from), kept(was)], [text, ['lock']])
})
