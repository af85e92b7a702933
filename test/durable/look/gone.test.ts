/** The agent's cheapest check of a target: are its names still there? test/cli/target-gone.test.ts has what the agent does then. */
import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isGone, replaceDirectory, replaceFile } from '../../../src/durable/index.js'
import { isKind } from '../../crash/judge/names.js'
import { scratchWith } from '../scratch.js'

const files = { a: '1', 'sub/b': '2' }
const forms = ['exchange', 'symlink'] as const

for (const publish of forms) {
  await t.test(
    `isGone finds an intact target there, and one that has another name beside its own (${publish})`,
    async (t) => {
      const [, target] = scratchWith(t, 'certs')
      await replaceDirectory(target, { files, publish })
      t.equal(await isGone(target), false)
      rmSync(join(target, 'a'))
      writeFileSync(join(target, 'other'), '')
      t.equal(await isGone(target), false, 'one name of two is left')
    },
  )

  await t.test(
    `isGone finds a target gone without its names, its directory, its parent or its record (${publish})`,
    async (t) => {
      const [root, target] = scratchWith(t, 'parent/certs')
      const parent = join(root, 'parent')
      const ways: Readonly<Record<string, () => void>> = {
        'it is removed': () => rmSync(target, { recursive: true }),
        'it is emptied': () => {
          for (const name of readdirSync(target)) rmSync(join(target, name), { recursive: true })
        },
        'other names are in its place': () => {
          rmSync(target, { recursive: true })
          mkdirSync(target)
          writeFileSync(join(target, 'other'), '')
        },
        'a file is in its place': () => {
          rmSync(target, { recursive: true })
          writeFileSync(target, '')
        },
        'a link to it is in its place': () => {
          renameSync(target, `${target}-moved`)
          symlinkSync(`${target}-moved`, target)
        },
        'its parent is removed': () => rmSync(parent, { recursive: true }),
        'its record is removed': () => {
          for (const name of readdirSync(parent).filter(isKind('record'))) unlinkSync(join(parent, name))
        },
      }
      for (const [name, way] of Object.entries(ways)) {
        rmSync(parent, { recursive: true, force: true })
        await replaceDirectory(target, { files, publish })
        way()
        t.equal(await isGone(target), true, name)
      }
    },
  )
}

await t.test('isGone asks a link of the symlink form for what it leads to', async (t) => {
  const [, target] = scratchWith(t, 'certs')
  await replaceDirectory(target, { files, publish: 'symlink' })
  const [generation = ''] = readdirSync(target).filter((name) => name.startsWith('..') && name !== '..data')
  rmSync(join(target, generation), { recursive: true })
  t.ok(readdirSync(target).includes('..data'))
  t.equal(await isGone(target), true)
})

await t.test('isGone finds a directory that is to be empty there', async (t) => {
  const [, target] = scratchWith(t, 'certs')
  await replaceDirectory(target, { files: {} })
  t.equal(await isGone(target), false)
  rmSync(target, { recursive: true })
  t.equal(await isGone(target), true)
})

await t.test('isGone finds a published file no directory', async (t) => {
  const [, target] = scratchWith(t, 'file')
  await replaceFile(target, 'content')
  t.equal(await isGone(target), true)
})
