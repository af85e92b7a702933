/** A source of files whose directory, or a part of the way to it, is exchanged while it is watched. */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { rename, workingDirectory } from '../../../native/index.js'
import { contentOf, reference } from '../recorder.js'
import { Directory, secret } from './directory.js'

const cert = reference('serving-cert')

void t.test('the source finds a missing directory once it appears', async (t) => {
  const directory = new Directory(t)
  rmSync(directory.path, { recursive: true })
  const source = directory.source()
  source.follow([{ reference: cert }])
  const { observation } = await directory.recorder.untilState(cert, 'unknown')
  t.match(observation, { reason: 'SourceUnavailable', message: `${directory.path}: could not be read: ENOENT` })
  mkdirSync(directory.path)
  await directory.recorder.untilState(cert, 'absent')
  directory.write('a.yaml', secret('serving-cert', 'one'))
  await directory.recorder.untilState(cert, 'present', 'one')
  renameSync(directory.path, `${directory.path}-away`)
  await directory.recorder.until('a warning', () => directory.warnings.length >= 2)
  t.equal(contentOf(source.latest(cert)), 'one', 'what is known stays')
  renameSync(`${directory.path}-away`, directory.path)
  directory.write('a.yaml', secret('serving-cert', 'two'))
  await directory.recorder.untilState(cert, 'present', 'two')
})

void t.test('the source follows a directory that is exchanged as a whole', async (t) => {
  const directory = new Directory(t)
  directory.write('a.yaml', secret('serving-cert', 'one'))
  const source = directory.source()
  source.follow([{ reference: cert }])
  await directory.recorder.untilState(cert, 'present', 'one')
  for (const content of ['two', 'three', 'four']) {
    const staged = join(directory.root, 'staged')
    mkdirSync(staged)
    writeFileSync(join(staged, 'a.yaml'), secret('serving-cert', content))
    await rename(workingDirectory, staged, workingDirectory, directory.path, 'exchange')
    rmSync(staged, { recursive: true })
    await directory.recorder.untilState(cert, 'present', content)
  }
  t.equal(directory.recorder.reported.length, 4, 'never absent')
})

void t.test('the source never mixes files of two versions of an exchanged directory', async (t) => {
  const directory = new Directory(t)
  const source = directory.source({ quiet: 0 })
  const many = Array.from({ length: 8 }, (_, index) => reference(`object-${index}`))
  let mixed: string | undefined
  source.subscribe(() =>
    // All that one look has found is reported before the microtasks run.
    queueMicrotask(() => {
      const contents = new Set(many.map((one) => contentOf(source.latest(one))))
      if (contents.size > 1) mixed ??= [...contents].join(' and ')
    }),
  )
  const staged = join(directory.root, 'staged')
  const stage = (content: string) => {
    rmSync(staged, { recursive: true, force: true })
    mkdirSync(staged)
    for (const { name } of many) writeFileSync(join(staged, `${name}.yaml`), secret(name, content))
  }
  stage('0')
  await rename(workingDirectory, staged, workingDirectory, directory.path, 'exchange')
  source.follow(many.map((reference) => ({ reference })))
  for (let generation = 1; generation <= 60; generation++) {
    stage(String(generation))
    await sleep(generation % 10)
    await rename(workingDirectory, staged, workingDirectory, directory.path, 'exchange')
    await sleep(generation % 7)
  }
  for (const one of many) await directory.recorder.untilState(one, 'present', '60')
  t.equal(mixed, undefined)
})

void t.test('the source follows a mounted ConfigMap: links into ..data', async (t) => {
  const directory = new Directory(t)
  const generation = (name: string, content: string) => {
    mkdirSync(join(directory.path, name))
    writeFileSync(join(directory.path, name, 'a.yaml'), secret('serving-cert', content))
    symlinkSync(name, join(directory.path, '..data_tmp'))
    renameSync(join(directory.path, '..data_tmp'), join(directory.path, '..data'))
  }
  generation('..1', 'one')
  symlinkSync('..data/a.yaml', join(directory.path, 'a.yaml'))
  const source = directory.source()
  source.follow([{ reference: cert }])
  await directory.recorder.untilState(cert, 'present', 'one')
  generation('..2', 'two')
  rmSync(join(directory.path, '..1'), { recursive: true })
  await directory.recorder.untilState(cert, 'present', 'two')
  t.equal(directory.recorder.reported.length, 2)
})

void t.test('the source follows a directory in a mounted ConfigMap by the changing link before it', async (t) => {
  const directory = new Directory(t)
  const mount = join(directory.root, 'mount')
  const generation = (name: string, content: string) => {
    mkdirSync(join(mount, name, 'sub', 'deep'), { recursive: true })
    writeFileSync(join(mount, name, 'sub', 'deep', 'a.yaml'), secret('serving-cert', content))
    symlinkSync(name, join(mount, '..data_tmp'))
    renameSync(join(mount, '..data_tmp'), join(mount, '..data'))
  }
  generation('..1', 'one')
  symlinkSync('..data/sub', join(mount, 'sub'))
  symlinkSync(mount, join(directory.root, 'link'))
  const source = directory.source({}, join(directory.root, 'link', 'sub', 'deep'))
  source.follow([{ reference: cert }])
  await directory.recorder.untilState(cert, 'present', 'one')
  for (const [name, content] of [
    ['..2', 'two'],
    ['..3', 'three'],
  ] as const) {
    // The old version stays: no event comes from within it.
    generation(name, content)
    await directory.recorder.untilState(cert, 'present', content)
  }
  t.equal(directory.recorder.reported.length, 3)
})
