import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { logToFile } from '../../src/cli/output/log-file.js'
import type { Log } from '../../src/log.js'
import { modeOf, scratch, scratchWith } from './pods.js'

const megabytes = 1_000_000
const days = 24 * 3600

/** A log that remembers its messages. */
function remembering(): { log: Log; said: string[] } {
  const said: string[] = []
  const say = (_fields: object, message: string): void => void said.push(message)
  return { log: { debug: say, info: say, warn: say, error: say }, said }
}

await t.test('the log file makes room at 5 MB, and two older files stay', async (t) => {
  const [directory, path] = scratchWith(t, 'monitor.log')
  const { log, said } = remembering()
  const both = logToFile(path, log)
  both.info({ revision: 7 }, 'first')
  both.debug({}, 'not for the file')
  t.equal(modeOf(path), '600')
  t.match(JSON.parse(readFileSync(path, 'utf8')), { level: 'info', revision: 7, msg: 'first', time: /^2/ })
  t.same(said, ['first', 'not for the file'], 'the other log has all of it')
  for (const round of [1, 2, 3]) {
    truncateSync(path, 5 * megabytes - 1)
    both.info({}, `last of ${round}`)
    t.ok(statSync(path).size >= 5 * megabytes, 'up to 5 MB there is room')
    both.warn({}, `first after ${round}`)
    t.equal(readFileSync(path, 'utf8').split('\n').length, 2, 'then a new file starts')
  }
  t.same(readdirSync(directory).sort(), ['monitor.log', 'monitor.log.1', 'monitor.log.2'])
  t.match(readFileSync(`${path}.1`, 'latin1'), 'last of 3')
  t.match(readFileSync(`${path}.2`, 'latin1'), 'last of 2')
})

await t.test('the log removes files without a write for 28 days', async (t) => {
  const path = join(scratch(t), 'monitor.log')
  const now = Date.now() / 1000
  for (const [name, age] of [
    ['.1', 27],
    ['.2', 29],
  ] as const) {
    writeFileSync(`${path}${name}`, 'x')
    utimesSync(`${path}${name}`, now - age * days, now - age * days)
  }
  logToFile(path, remembering().log).info({}, 'm')
  t.ok(existsSync(`${path}.1`))
  t.notOk(existsSync(`${path}.2`))
})

await t.test('the log follows no link, and writes to no FIFO', async (t) => {
  const [directory, elsewhere] = scratchWith(t, 'elsewhere')
  writeFileSync(elsewhere, '')
  symlinkSync(elsewhere, join(directory, 'link'))
  execFileSync('mkfifo', [join(directory, 'fifo')])
  for (const name of ['link', 'fifo']) {
    const { log, said } = remembering()
    logToFile(join(directory, name), log).info({}, 'one')
    t.same(said, ['one', 'could not write the log file'], name)
  }
  t.equal(statSync(elsewhere).size, 0)
})

await t.test('the log reports an unwritable file once, and stops nothing', async (t) => {
  const path = join(scratch(t), 'directory')
  mkdirSync(path)
  const { log, said } = remembering()
  const both = logToFile(path, log)
  both.info({}, 'one')
  both.error({}, 'two')
  t.same(said, ['one', 'could not write the log file', 'two'])
  const nowhere = remembering()
  logToFile(join(path, 'none', 'file'), nowhere.log).info({}, 'three')
  t.same(nowhere.said, ['three', 'could not write the log file'])
})
