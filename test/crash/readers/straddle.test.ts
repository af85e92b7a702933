/*
 * What no publisher can prevent, and what a reader can do about it: two opens by path are two looks, and a swap may lie between
 * them. The remedies: open the directory once and read through it, or keep what belongs together in one file.
 */
import { closeSync, constants, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { scratch } from '../../durable/scratch.js'
import { library } from '../syscalls/distribution.js'

const { replaceDirectory, replaceFile } = await library()
const version = (text: string) => ({ files: { 'tls.crt': text, 'tls.key': text } })

await t.test('two opens by path straddle a swap', async (t) => {
  const target = join(scratch(t), 'certs')
  await replaceDirectory(target, version('old'))
  const certificate = readFileSync(join(target, 'tls.crt'), 'utf8')
  await replaceDirectory(target, version('new'))
  const key = readFileSync(join(target, 'tls.key'), 'utf8')
  t.same([certificate, key], ['old', 'new'], 'a certificate and a key that do not belong together')
})

await t.test('through one descriptor of the directory: one set, or ENOENT', async (t) => {
  const target = join(scratch(t), 'certs')
  await replaceDirectory(target, version('old'))
  const open = (): number => openSync(target, constants.O_RDONLY | constants.O_DIRECTORY)
  const read = (directory: number, name: string): string => readFileSync(`/proc/self/fd/${directory}/${name}`, 'utf8')
  let directory = open()
  t.equal(read(directory, 'tls.crt'), 'old')
  await replaceDirectory(target, version('new'))
  t.throws(() => read(directory, 'tls.key'), { code: 'ENOENT' }, 'replaced: open it again, and start over')
  closeSync(directory)
  directory = open()
  t.same([read(directory, 'tls.crt'), read(directory, 'tls.key')], ['new', 'new'])
  closeSync(directory)
})

await t.test('a reader of one file with both parts gets one version, however slowly it reads', async (t) => {
  const parent = join(scratch(t), 'parent')
  mkdirSync(parent)
  const combined = join(parent, 'server.pem')
  await replaceFile(combined, 'old key, old certificate')
  const file = openSync(combined, 'r')
  await replaceFile(combined, 'new key, new certificate')
  t.equal(readFileSync(file, 'utf8'), 'old key, old certificate')
  closeSync(file)
  t.equal(readFileSync(combined, 'utf8'), 'new key, new certificate')
})
