/** The runner, before files that must not pass for good: each is run by test/run.mjs's own program, in a process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import t, { type Test } from 'tap'
import { project } from '../project.js'
import { SimulatedTime } from '../simulated-time.js'
import { until } from '../until.js'
import { sharesItsProcess, testFiles } from './files.js'
import { runBatch } from './run-batch.js'
import { batches, longest } from './schedule.js'
import { refuseTooFew, suiteNames, suites } from './suites.js'
import type { TestResult } from './tally.js'

mkdirSync(join(project, 'dist/test'), { recursive: true })
const directory = mkdtempSync(join(project, 'dist/test/runner-'))
t.teardown(() => rmSync(directory, { recursive: true, force: true }))

/** A test module below `dist`, where it finds tap; its path from the project's root. */
function module(name: string, text: string): string {
  const path = join(directory, `${name}.js`)
  writeFileSync(path, `import t from 'tap'\n${text}`)
  return relative(project, path)
}

async function results(text: string, limits = { timeout: 20, limit: 30 }): Promise<readonly TestResult[]> {
  const { files } = await runBatch([module('one', text)], limits)
  return files.flatMap((file) => file.results)
}

const outcomes = (found: readonly TestResult[]): string[] => found.map(({ name, outcome }) => `${outcome}: ${name}`)

await t.test('the runner counts tests, not assertions, nor chapters', async (t) => {
  const found = await results(`
    await t.test('two assertions', async (t) => { t.ok(true); t.ok(true) })
    await t.test('chapter', async (t) => {
      await t.test('one', async (t) => t.ok(true))
      await t.test('other', async (t) => t.ok(true))
    })`)
  t.same(outcomes(found), ['passed: two assertions', 'passed: chapter › one', 'passed: chapter › other'])
})

await t.test('a failed assertion fails its test, and not the chapter, too; the report keeps its text', async (t) => {
  const found = await results(`
    await t.test('chapter', async (t) => {
      await t.test('wrong', async (t) => t.equal(1, 2, 'numbers'))
      await t.test('right', async (t) => t.ok(true))
    })`)
  t.same(outcomes(found), ['failed: chapter › wrong', 'passed: chapter › right'])
  t.match(found[0]?.detail, /numbers[^]*\+1/)
  t.match(found[0]?.detail, /stack: [^]*one\.js:4:/)
  t.notMatch(found[0]?.detail, /tap\.cjs/, 'the frames of tap say nothing')
})

await t.test('an assertion outside all tests makes a test of the file', async (t) => {
  const [right] = await results('t.ok(true)')
  t.equal(right?.outcome, 'passed')
  const [wrong] = await results("t.ok(false, 'outside')")
  t.match(wrong, { outcome: 'failed', detail: /outside/ })
})

await t.test('skipped tests, to-dos and wholly skipped files do not pass', async (t) => {
  const found = await results(`
    await t.test('needy', { skip: 'needs root' }, async (t) => t.ok(true))
    await t.test('later', { todo: true }, async (t) => t.ok(true))
    await t.test('inside', async (t) => t.skip('not here'))`)
  t.same(outcomes(found).slice(0, 2), ['skipped: needy', 'skipped: later'])
  t.equal(found[0]?.detail, 'needs root')
  t.notOk(
    outcomes(found).some((line) => line.startsWith('passed')),
    outcomes(found).join(),
  )
  t.match(await results("t.plan(0, 'no cluster')"), [{ outcome: 'skipped', detail: 'no cluster' }])
})

await t.test('a test without an assertion, a file without a test, and a file without TAP have failed', async (t) => {
  t.match(await results("await t.test('empty', async () => {})"), [{ outcome: 'failed', detail: 'It asserts nothing' }])
  t.match(await results(''), [{ outcome: 'failed' }])
  t.match(await results("console.log('all is well')"), [{ outcome: 'failed' }])
})

await t.test('a broken plan, a bail-out, a throw, an exit code and a signal have failed', async (t) => {
  const passes = "await t.test('good', async (t) => t.ok(true));"
  for (const [name, text, detail] of [
    ['plan', `t.plan(2); ${passes}`, /./],
    ['bail-out', `${passes} t.bailout('no more')`, /no more/],
    ['throw', `${passes} throw new Error('from the top')`, /./],
    ['rejection', `${passes} void Promise.reject(new Error('nobody waits'))`, /./],
    ['exit code', `${passes} process.on('exit', () => { process.exitCode = 7 })`, /exit code 7/],
    ['exit code 1', `${passes} process.on('exit', () => { process.exitCode = 1 })`, /exit code 1/],
    ['signal', `${passes} process.kill(process.pid, 'SIGKILL')`, /SIGKILL/],
    ['cut off', `${passes} process.reallyExit(0)`, /./],
  ] as const) {
    const found = await results(text)
    const failed = found.filter(({ outcome }) => outcome === 'failed')
    t.ok(failed.length > 0, `${name}: ${outcomes(found).join()}`)
    t.match(failed.map((one) => one.detail).join('\n'), detail, name)
  }
})

await t.test('a test that hangs, and a process that does, have failed, and leave nothing running', async (t) => {
  const waits = "await t.test('waits', () => new Promise(() => setInterval(() => {}, 1000)))"
  t.match(await results(waits, { timeout: 1, limit: 30 }), [{ outcome: 'failed', name: 'waits' }])
  const killed = async (t: Test, text: string): Promise<string> => {
    const time = new SimulatedTime(t)
    const marker = join(directory, 'hangs')
    const found = results(`import { writeFileSync } from 'node:fs'
      const hangs = () => writeFileSync('${marker}', '')
      await t.test('good', async (t) => t.ok(true))
      ${text}`)
    await until('it hangs', () => existsSync(marker))
    rmSync(marker)
    await time.advance(30_000)
    t.same(outcomes(await found).slice(0, -1), ['passed: good'])
    return (await found).at(-1)?.detail ?? ''
  }
  await t.test('it spins', async (t) => {
    const sleeper = `${directory}/sleeper`
    const said = await killed(
      t,
      `const { spawn } = await import('node:child_process')
      spawn('sleep', ['300'], { argv0: '${sleeper}', stdio: 'ignore' })
      function turnsRound() { hangs(); for (;;) {} }
      turnsRound()`,
    )
    t.match(said, /^It was killed after 30 s\nIt waits for: .*ProcessWrap.*\nat turnsRound \(file:\/\/.*one\.js:7:/)
    t.match(said, new RegExp(`\nIt has started: \\d+ ${sleeper} 300`))
    const pgrep = spawn('pgrep', ['-f', sleeper], { stdio: 'ignore' })
    t.same(await once(pgrep, 'close'), [1, null], 'what it had started has ended')
  })
  await t.test('it waits', async (t) => {
    const said = await killed(t, "const net = await import('node:net'); net.createServer().listen(0, hangs)")
    t.match(said, /^It was killed after 30 s\nIt waits for: .*TCPServerWrap.*\nIt runs no JavaScript/)
  })
})

await t.test(
  'several files in a process have separate results; behind a file that dies, the runner leaves the others out',
  async (t) => {
    const good = module('good', "await t.test('good', async (t) => t.ok(true))")
    const bad = module('bad', "await t.test('bad', async (t) => t.ok(false, 'wrong'))")
    const dies = module('dies', "await t.test('before', async (t) => t.ok(true)); process.kill(process.pid, 'SIGKILL')")
    const unplanned = module('unplanned', "await t.test('unplanned', async (t) => { t.plan(2); t.ok(true) })")
    const limits = { timeout: 20, limit: 30 }
    const said = ({ files }: Awaited<ReturnType<typeof runBatch>>) =>
      files.map((file) => [file.file, file.failed() ? 'failed' : 'passed'])
    const first = await runBatch([good, bad, dies, good], limits)
    t.same(said(first), [
      [good, 'passed'],
      [bad, 'failed'],
      [dies, 'failed'],
    ])
    const second = await runBatch([unplanned, good], limits)
    t.same(said(second), [[unplanned, 'failed']])
    t.same(second.left, [good], 'another process runs it')
    const rejects = module(
      'rejects',
      "await t.test('r', (t) => { t.ok(true); void Promise.reject(new Error('nobody waits')) })",
    )
    const third = await runBatch([rejects, good], limits)
    t.same(said(third)[0], [rejects, 'failed'], 'an error that nobody caught')
    const details = third.files[0]?.results.map(({ detail }) => detail)
    t.match(details?.join('\n'), /nobody waits/)
    const serves = module(
      'serves',
      `import { createServer } from 'node:net'
      const server = createServer().listen(0)
      t.teardown(() => server.close())
      await t.test('s', async (t) => t.ok(true))`,
    )
    const fourth = await runBatch([serves, good], limits)
    t.same(said(fourth), [
      [serves, 'passed'],
      [good, 'passed'],
    ])
    t.ok(
      fourth.files.reduce((sum, { seconds }) => sum + seconds, 0) < limits.timeout,
      'what only a teardown at the top closes holds nobody up',
    )
  },
)

await t.test('each file runs once, in a clone where none ran yet the longest first', async (t) => {
  const files = testFiles()
  t.same(
    Object.keys(longest).filter((file) => !files.includes(file)),
    [],
    'all of the longest exist',
  )
  const queue = batches(files, false, {})
  t.same(queue.flat().sort(), files)
  const first = queue.findIndex((batch) => !batch.some((file) => file in longest))
  const [slowest = ''] = Object.keys(longest)
  t.same(queue[0], [slowest])
  t.ok(first > 10, `${first} batches of the longest come first`)
})

await t.test('each file of the node suite has its place in the schedule: each takes long', async (t) => {
  t.same(
    testFiles().filter((file) => suites.node.holds(file) && longest[file] === undefined),
    [],
  )
})

/** So many files may be added before a floor must follow. */
const lagsAtMost = 15

await t.test('the runner refuses a suite of which a test file is missing', async (t) => {
  for (const name of suiteNames) {
    const { holds, files: least } = suites[name]
    const files = testFiles().filter(holds)
    t.doesNotThrow(() => refuseTooFew(name, files))
    t.throws(() => refuseTooFew(name, files.slice(0, least - 1)), /find what is missing/)
    t.ok(files.length - least <= lagsAtMost, `${name} has ${files.length} files: raise its floor`)
  }
})

await t.test('few files get a process each', async (t) => {
  const alone = testFiles().filter((file) => suites.unit.holds(file) && !sharesItsProcess(file))
  // Each takes 0.3 s of CPU until its first test.
  t.ok(alone.length <= 25, `${alone.length}: ${alone.join(' ')}`)
})
