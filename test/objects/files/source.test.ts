/** A source of files: which object each file holds, as it is written, moved and removed. */
import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  rmSync,
  promises,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { FileSource } from '../../../src/objects/files/source.js'
import { firstAnswers } from '../../../src/objects/first-answers.js'
import { contentOf, reference } from '../recorder.js'
import { Directory, secret } from './directory.js'

const cert = reference('serving-cert')
const other = reference('other')

void t.test('the source reports an object that is read, changed and removed', async (t) => {
  const directory = new Directory(t)
  directory.write('a.yaml', secret('serving-cert', 'one'))
  const source = directory.source()
  source.follow([{ reference: cert }, { reference: other }])
  const { recorder } = directory
  await recorder.untilState(cert, 'present', 'one')
  await recorder.untilState(other, 'absent')
  const first = source.latest(cert)
  t.match(first, { object: { uid: '', resourceVersion: /^file:[0-9a-f]{32}$/, terminating: false } })
  directory.write('a.yaml', secret('serving-cert', 'two'))
  await recorder.untilState(cert, 'present', 'two')
  directory.rename('a.yaml', secret('serving-cert', 'one'))
  await recorder.untilState(cert, 'present', 'one')
  directory.write(
    'b.json',
    JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'other' }, stringData: { a: 'x' } }),
  )
  await recorder.untilState(other, 'present', 'x')
  directory.remove('a.yaml')
  await recorder.untilState(cert, 'absent')
  t.strictSame(directory.warnings, [])
  t.ok(recorder.heartbeats.length > 0)
})

const versionIn = (source: FileSource, of = cert) => {
  const observation = source.latest(of)
  return observation?.state === 'present' ? observation.object.resourceVersion : undefined
}

void t.test('versions tell nothing of the content, and stay while no program writes the file', async (t) => {
  const [one, two] = [new Directory(t), new Directory(t)]
  one.write('a.yaml', secret('serving-cert', 'same'))
  two.write('a.yaml', secret('serving-cert', 'sane'))
  utimesSync(join(one.path, 'a.yaml'), 1_000, 1_000)
  utimesSync(join(two.path, 'a.yaml'), 1_000, 1_000)
  const sources = [one.source(), two.source(), one.source()]
  for (const source of sources) source.follow([{ reference: cert }])
  // Each source for itself: two of them tell the same recorder.
  await Promise.all(sources.map((source) => firstAnswers(source, () => [cert], { timeout: 60_000 })))
  const [a, b, again] = sources.map((source) => versionIn(source))
  t.equal(a, b, 'another content of the same size and time is the same version')
  t.equal(a, again, 'and so it is after a restart')
})

void t.test('of two objects in a file, the unchanged one keeps its version', async (t) => {
  const directory = new Directory(t)
  const both = (text: string) => `${secret('serving-cert', text)}---\n${secret('other', 'fixed')}`
  directory.write('a.yaml', both('one'))
  const source = directory.source()
  source.follow([{ reference: cert }, { reference: other }])
  await directory.recorder.untilState(other, 'present')
  await directory.recorder.untilState(cert, 'present', 'one')
  const [first, second] = [versionIn(source), versionIn(source, other)]
  directory.rename('a.yaml', both('changed'))
  await directory.recorder.untilState(cert, 'present', 'changed')
  t.not(versionIn(source), first)
  t.equal(versionIn(source, other), second)
})

void t.test('the source reads a file again after a failed read, though no program has written it', async (t) => {
  const directory = new Directory(t)
  directory.write('a.yaml', secret('serving-cert', 'one'))
  const { open } = promises
  t.teardown(() => {
    promises.open = open
    syncBuiltinESMExports()
  })
  promises.open = () => Promise.reject(Object.assign(new Error('EIO: i/o error'), { code: 'EIO' }))
  syncBuiltinESMExports()
  const source = directory.source({ rescan: 100 })
  source.follow([{ reference: cert }])
  await directory.recorder.untilState(cert, 'unknown')
  await directory.recorder.until('looked at again', () => directory.logged.length >= 3)
  t.strictSame(directory.warnings, [
    'a.yaml: could not be read: EIO; holdfast keeps what it read from this file before',
  ])
  promises.open = open
  syncBuiltinESMExports()
  await directory.recorder.untilState(cert, 'present', 'one')
})

/** Calls back within each look of the source, before it lists the directory. */
function atEachLook(t: Test, { path }: Directory, act: () => void): void {
  const { readdir } = promises
  t.teardown(() => {
    promises.readdir = readdir
    syncBuiltinESMExports()
  })
  const listed = (...asked: Parameters<typeof readdir>) => {
    if (asked[0] === path) act()
    return readdir(...asked)
  }
  promises.readdir = listed as typeof readdir
  syncBuiltinESMExports()
}

void t.test('the source reads a file written in pieces once it is complete', async (t) => {
  const directory = new Directory(t)
  const source = directory.source({ quiet: 30 })
  source.follow([{ reference: cert }])
  await directory.recorder.untilState(cert, 'absent')
  const text = `${secret('serving-cert', 'one')}  b: YjEyMzQ1\n`
  // Every beginning of it that ends with a line of data is a valid document.
  const file = openSync(join(directory.path, 'a.yaml'), 'w')
  t.teardown(() => closeSync(file))
  const [first = '', ...lines] = text.split(/(?<=\n)/)
  atEachLook(t, directory, () => writeSync(file, lines.shift() ?? ''))
  writeSync(file, first)
  await directory.recorder.untilState(cert, 'present', 'one')
  t.equal(lines.length, 0, 'it waited for the last line')
  t.equal(directory.recorder.reported.length, 2, 'nothing between absent and whole')
  const latest = source.latest(cert)
  t.ok(latest?.state === 'present' && latest.object.data.has('b'))
  t.strictSame(directory.warnings, [])
})

void t.test('the source reports a bad file with its place, and changes nothing', async (t) => {
  const directory = new Directory(t)
  directory.write('a.yaml', `${secret('serving-cert', 'one')}---\n${secret('other', 'two')}`)
  const source = directory.source()
  source.follow([{ reference: cert }, { reference: other }])
  const { recorder } = directory
  await recorder.untilState(cert, 'present', 'one')
  await recorder.untilState(other, 'present', 'two')
  const bad: [string, RegExp][] = [
    [`${secret('serving-cert', 'new')}---\nkind: [canary\nx: canary\n`, /a\.yaml:9: not valid YAML \(BAD_INDENT\)/],
    [
      secret('serving-cert', 'new').replace('data:', 'data: canary\nx:'),
      /a\.yaml:1: .*data must be a map, not a string/,
    ],
    [
      `# first\n${secret('serving-cert', 'new').replace(/a: .*/, 'a: canary!')}`,
      /a\.yaml:2: .*data\["a"\] is not valid base64/,
    ],
    ['', /a\.yaml: it is empty/],
    ['# canary\n', /a\.yaml: it no longer holds any object/],
    ['a: *canary', /a\.yaml:1: not valid YAML/],
    ['canary', /a\.yaml:1: the document must be a map, not a string/],
    [secret('serving-cert', 'new').replace('kind: Secret\n', ''), /a\.yaml:1: apiVersion and kind are required/],
    [secret('../canary', 'new'), /a\.yaml:1: metadata\.name ".*" is not a name/],
    [`${secret('serving-cert', 'new')}  a: again\n`, /a\.yaml:7: a field stands twice in one map/],
  ]
  for (const [text, message] of bad) {
    const before = directory.warnings.length
    const third = reference(`third-${before}`)
    directory.write('a.yaml', text)
    await recorder.until('a warning', () => directory.warnings.length > before)
    t.match(directory.warnings.at(-1), message)
    source.follow([{ reference: cert }, { reference: other }, { reference: third }])
    const { observation } = await recorder.untilState(third, 'unknown')
    t.match(observation, { reason: 'ObjectInvalid', message })
    source.follow([{ reference: cert }, { reference: other }])
  }
  t.equal(contentOf(source.latest(cert)), 'one')
  t.equal(contentOf(source.latest(other)), 'two')
  // The report shows the faulty name, and no value.
  const said = [...recorder.reported.map(({ observation }) => observation), ...directory.logged]
  t.notMatch(JSON.stringify(said).replaceAll('../canary', ''), 'canary')
  directory.write('a.yaml', secret('serving-cert', 'mended'))
  await recorder.untilState(cert, 'present', 'mended')
  await recorder.untilState(other, 'absent')
})

void t.test('the source reports the same object in two files', async (t) => {
  const directory = new Directory(t)
  directory.write('a.yaml', secret('serving-cert', 'one'))
  directory.write('b.yaml', `# more\n${secret('serving-cert', 'two')}`)
  const source = directory.source()
  source.follow([{ reference: cert }])
  const { observation } = await directory.recorder.untilState(cert, 'unknown')
  t.match(observation, { reason: 'ObjectInvalid', message: /a\.yaml:1 and b\.yaml:2/ })
  directory.remove('a.yaml')
  await directory.recorder.untilState(cert, 'present', 'two')
})

void t.test('an object that moves from one file to another is never reported as absent or twice there', async (t) => {
  const directory = new Directory(t)
  directory.write('a.yaml', secret('serving-cert', 'one'))
  const source = directory.source()
  source.follow([{ reference: cert }])
  await directory.recorder.untilState(cert, 'present', 'one')
  directory.remove('a.yaml')
  directory.write('b.yaml', secret('serving-cert', 'two'))
  await directory.recorder.untilState(cert, 'present', 'two')
  t.equal(directory.recorder.reported.length, 2)
})

void t.test('a file that is away for a moment is not absent', async (t) => {
  const directory = new Directory(t)
  directory.write('a.yaml', secret('serving-cert', 'one'))
  const source = directory.source()
  source.follow([{ reference: cert }])
  await directory.recorder.untilState(cert, 'present', 'one')
  let missed = 0
  atEachLook(t, directory, () => {
    if (existsSync(join(directory.path, 'a.yaml'))) return
    // The first look finds it missing; the second one does not.
    missed += 1
    if (missed === 2) directory.write('a.yaml', secret('serving-cert', 'two'))
  })
  directory.remove('a.yaml')
  await directory.recorder.untilState(cert, 'present', 'two')
  t.equal(missed, 2)
  t.equal(directory.recorder.reported.length, 2)
})

void t.test('the source looks from time to time, and finds what no event reports', async (t) => {
  const directory = new Directory(t)
  const outside = join(directory.root, 'elsewhere')
  writeFileSync(outside, secret('serving-cert', 'one'))
  symlinkSync(outside, join(directory.path, 'a.yaml'))
  const source = directory.source({ rescan: 100 })
  source.follow([{ reference: cert }])
  await directory.recorder.untilState(cert, 'present', 'one')
  // No watch is on the directory of the link's target.
  appendFileSync(outside, '  b: YjEyMzQ1\n')
  await directory.recorder.until('two keys', () => {
    const latest = source.latest(cert)
    return latest?.state === 'present' && latest.object.data.size === 2
  })
  const latest = source.latest(cert)
  t.equal(latest?.state === 'present' && Buffer.from(latest.object.data.get('b') ?? '').toString(), 'b12345')
})

void t.test('a file that never comes to rest holds up the others only for a while', async (t) => {
  const directory = new Directory(t)
  const source = directory.source({ quiet: 100, patience: 300 })
  const restless = setInterval(() => directory.write('b.yaml', secret('other', String(Math.random()))), 20)
  t.teardown(() => clearInterval(restless))
  directory.write('b.yaml', secret('other', 'x'))
  directory.write('a.yaml', secret('serving-cert', 'one'))
  source.follow([{ reference: cert }, { reference: other }])
  await directory.recorder.untilState(cert, 'present', 'one')
  t.match(source.latest(other), { state: 'unknown', message: /b\.yaml: another program is still writing it/ })
  clearInterval(restless)
  directory.write('b.yaml', secret('other', 'rest'))
  await directory.recorder.untilState(other, 'present', 'rest')
})

void t.test(
  'the source passes over pipes, directories, dangling links and other names, and refuses large files',
  async (t) => {
    const directory = new Directory(t)
    mkdirSync(join(directory.path, 'directory.yaml'))
    symlinkSync('nowhere', join(directory.path, 'link.yaml'))
    directory.write('.a.yaml.swp', 'canary: [')
    directory.write('.hidden.yaml', 'canary: [')
    directory.write('notes.txt', 'canary: [')
    const source = directory.source()
    source.follow([{ reference: cert }])
    await directory.recorder.untilState(cert, 'absent')
    t.strictSame(directory.warnings, [])
    directory.write('large.yaml', `#${'x'.repeat(17 * 1024 * 1024)}`)
    await directory.recorder.until('a warning', () => directory.warnings.length > 0)
    t.match(directory.warnings[0], /large\.yaml: holds \d+ bytes; at most 16777216 are allowed/)
    t.equal(source.latest(cert)?.state, 'absent')
  },
)

void t.test('firstAnswers waits for the first answers of the files', async (t) => {
  const directory = new Directory(t)
  directory.write('a.yaml', secret('serving-cert', 'one'))
  const source = directory.source()
  source.follow([{ reference: cert }, { reference: other }])
  t.strictSame(await firstAnswers(source, () => [cert, other], { timeout: 60_000 }), [])
  t.equal(contentOf(source.latest(cert)), 'one')
  const missing = new Directory(t)
  rmSync(missing.path, { recursive: true })
  const away = missing.source()
  away.follow([{ reference: cert }])
  t.strictSame(
    await firstAnswers(away, () => [cert], { timeout: 60_000 }),
    [],
    'a directory that does not exist is no wait',
  )
  t.match(away.latest(cert), { state: 'unknown', permanent: true })
  t.strictSame(await firstAnswers(away, () => [other], { timeout: 50 }), [other], 'nothing was said of the other')
  const abort = new AbortController()
  const waiting = firstAnswers(away, () => [other], { timeout: 10_000, signal: abort.signal })
  abort.abort(new Error('enough'))
  await t.rejects(waiting, { message: 'enough' })
  await t.rejects(
    firstAnswers(away, () => [other], { timeout: 10_000, signal: abort.signal }),
    {
      message: 'enough',
    },
  )
})
