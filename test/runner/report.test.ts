import t from 'tap'
import { Report } from './report.js'
import { FileTally, Tally } from './tally.js'

void t.test('the report tells how values differ', async (t) => {
  const stream = new Tally('test/sweep.test.ts')
  stream.write(`TAP version 14
not ok 1 - should be equivalent
  ---
  diff: |
    --- expected
    +++ actual
    @@ -1,1 +1,4 @@
    -Array []
    +Array [
    +  "EIO at fsync: it exits with 0",
    +  "EIO at write: it hangs",
    +]
  ...
1..1
`)
  stream.end(undefined)
  const lines: string[] = []
  const report = new Report((line) => lines.push(line), false)
  report.batch({ left: [], tap: '', stderr: '', files: stream.files })
  report.totals(1, 1)
  t.same(
    lines.filter((line) => line.startsWith('failed: ')),
    ['failed: test/sweep.test.ts: should be equivalent: +"EIO at fsync: it exits with 0", +"EIO at write: it hangs",'],
  )
})

void t.test('the end names each failure with its reason in one line, and cuts long lines of a log', async (t) => {
  const file = new FileTally('test/disk.test.ts')
  file.results.push({ name: 'a › b', outcome: 'failed', detail: 'not equal\n    diff: |\n      -1' })
  file.results.push({ name: 'c', outcome: 'passed', detail: '' })
  file.remarks.push({ of: 'a › b', text: `# {"objects":"${'x'.repeat(10_000)}","msg":"why it failed"}` })
  for (let count = 0; count < 100; count++) file.remarks.push({ of: 'c', text: '# what went well' })
  const whole = new FileTally('test/crash.test.ts')
  whole.fail('It was ended by SIGSEGV')
  const lines: string[] = []
  const report = new Report((line) => lines.push(...line.split('\n')), false)
  const ran = { left: [], tap: '', stderr: '' }
  const stderr = 'a warning\n'.repeat(100)
  report.batch({ ...ran, stderr, files: [file] })
  report.batch({ ...ran, files: [whole] })
  report.totals(2, 2)
  t.same(
    lines.filter((line) => line.startsWith('failed: ')),
    ['failed: test/disk.test.ts › a › b: not equal: -1', 'failed: test/crash.test.ts: It was ended by SIGSEGV'],
  )
  t.equal(Math.max(...lines.map((line) => line.length)) < 350, true, 'no line is longer')
  t.match(lines.join('\n'), /^ {2}\| # \{"objects":"x+…x+","msg":"why it failed"\}$/m, 'to its end')
  t.equal(lines.filter((line) => line.includes('a warning')).length, 60, 'and beside it what the process has said')
  t.notOk(lines.some((line) => line.includes('what went well')))
  t.equal(lines.at(-1), '1 passed, 2 failed, 0 skipped')
})
