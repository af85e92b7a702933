import t from 'tap'
import { Report } from './report.js'
import { FileTally } from './tally.js'

void t.test('the end names what failed and why, each in one line, and long lines of a log are cut', (t) => {
  const file = new FileTally('test/disk.test.ts')
  file.results.push({ name: 'a › b', outcome: 'failed', detail: 'not equal\n    diff: |\n      -1' })
  file.remarks.push(`# {"objects":${'x'.repeat(10_000)}}`)
  const whole = new FileTally('test/crash.test.ts')
  whole.fail('It was ended by SIGSEGV')
  const lines: string[] = []
  const report = new Report((line) => lines.push(...line.split('\n')), false)
  const ran = { left: [], tap: '', stderr: '', seconds: 1, cpuSeconds: 1 }
  report.batch({ ...ran, files: [file] })
  report.batch({ ...ran, files: [whole] })
  report.totals(2, 2)
  t.same(
    lines.filter((line) => line.startsWith('failed: ')),
    ['failed: test/disk.test.ts › a › b: not equal', 'failed: test/crash.test.ts: It was ended by SIGSEGV'],
  )
  t.equal(Math.max(...lines.map((line) => line.length)) < 310, true, 'no line is longer')
  t.equal(lines.at(-1), '0 passed, 2 failed, 0 skipped')
  t.end()
})
