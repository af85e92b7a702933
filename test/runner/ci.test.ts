/** `.ci/stages`, before suites that are logs: its counts, its last line, and its exit code. */
import { execFile } from 'node:child_process'
import t from 'tap'
import { project } from '../project.js'

interface Run {
  readonly code: number
  readonly lines: readonly string[]
}

/** Stages and suites in bash, the conclusion behind them. */
async function run(suites: string, allowed = ''): Promise<Run> {
  const script = `set -uo pipefail; allowed=(${allowed}); . .ci/stages; ${suites}\nconclude 1500; code=$?; rm -rf "$logs"; exit $code`
  return new Promise((resolve) => {
    execFile('bash', ['-c', script], { cwd: project }, (error, stdout, stderr) => {
      const code = error === null ? 0 : Number(error.code)
      resolve({ code, lines: `${stderr}${stdout}`.trimEnd().split('\n') })
    })
  })
}

/** A suite that prints these lines, and ends with this code. */
function suite(name: string, lines: readonly string[], code = 0): string {
  return `suite '${name}' 60 bash -c 'printf "%s\\n" "$@"; exit ${code}' - ${lines.map((line) => `'${line}'`).join(' ')}`
}

const last = ({ lines }: Run): string => lines.at(-1) ?? ''

await t.test('ci adds suites up; a stage without totals counts as one', async (t) => {
  const all = await run(
    [
      suite('first', ['ok', '12 passed, 0 failed, 0 skipped']),
      suite('second', ['3 passed, 0 failed, 0 skipped', 'more', '4 passed, 0 failed, 0 skipped']),
      'stage lint 60 true',
    ].join('\n'),
  )
  t.equal(last(all), '20 passed, 0 failed, 0 skipped')
  t.equal(all.code, 0)
})

await t.test('ci says how much CPU a suite took', async (t) => {
  const busy = 'for ((i = 0; i < 500000; i++)); do :; done'
  const stages = [
    `stage busy 60 bash -c '${busy}'`,
    // With no niceness: a busy machine would not come to it.
    `niceness=0 begin behind 60 bash -c '${busy}; ${busy}'`,
    // It ends while another one runs.
    'stage idle 60 bash -c "until [ -s \\"$logs/behind.log.status\\" ]; do sleep 0.5; done; sleep 0.5"',
    'finish behind',
  ]
  const { code, lines } = await run(stages.join('\n'))
  t.equal(code, 0)
  const seconds = (name: string) =>
    Number(
      new RegExp(`^== ${name}: .* skipped; ([0-9.]+) s of CPU of 60 s, in \\d+ s$`, 'm').exec(lines.join('\n'))?.[1],
    )
  t.ok(seconds('busy') > 0 && seconds('behind') > 0, lines.join('\n'))
  t.ok(seconds('idle') < seconds('busy'))
})

await t.test('a failure counts with any exit code, and ci shows the log', async (t) => {
  const quiet = await run(suite('quiet', ['the reason of it', '5 passed, 2 failed, 0 skipped']))
  t.equal(last(quiet), '5 passed, 2 failed, 0 skipped')
  t.equal(quiet.code, 1)
  t.ok(quiet.lines.includes('the reason of it'))
  t.ok(quiet.lines.includes('failed: quiet'))
  const loud = await run(suite('loud', ['5 passed, 0 failed, 0 skipped'], 1))
  t.equal(last(loud), '5 passed, 1 failed, 0 skipped', 'coverage below its floor, say')
  t.equal(loud.code, 1)
})

await t.test('the end of ci says why each suite failed, whatever its log looks like', async (t) => {
  const { lines } = await run(
    [
      suite('first', ['failed: test/a › of it: why', 'much else', '5 passed, 1 failed, 0 skipped'], 1),
      suite('second', ['making the image', '', 'E: the mirror is away'], 100),
      'stage third 60 false',
    ].join('\n'),
  )
  const end = lines.slice(lines.indexOf('failed: first'), -2).map((line) => line.replace(/after \d+ s$/, 'after N s'))
  t.strictSame(end, [
    'failed: first',
    'failed: second',
    'failed: third',
    '  first: exit code 1 after N s',
    '  first: failed: test/a › of it: why',
    '  second: exit code 100 after N s',
    '  second: making the image',
    '  second: E: the mirror is away',
    '  third: exit code 1 after N s',
  ])
})

await t.test('a suite that crashes, or counts nothing, has failed; so has a stage', async (t) => {
  const crashed = await run(`suite crash 60 bash -c 'echo 3 tests passed; kill -SEGV $$'`)
  t.equal(last(crashed), '0 passed, 1 failed, 0 skipped')
  t.match(crashed.lines.join('\n'), /exit code 139/)
  t.equal(crashed.code, 1)
  const empty = await run(suite('empty', ['nothing to do', '0 passed, 0 failed, 0 skipped']))
  t.equal(last(empty), '0 passed, 1 failed, 0 skipped')
  t.equal(empty.code, 1)
  const stage = await run('stage lint 60 false')
  t.equal(last(stage), '0 passed, 1 failed, 0 skipped')
  t.equal(stage.code, 1)
})

await t.test('a skipped or left-out test fails the run, unless it is allowed by name', async (t) => {
  const skips = suite('needy', ['skipped: test/a › needs root (root)', '7 passed, 0 failed, 1 skipped'])
  const refused = await run(skips)
  t.equal(last(refused), '7 passed, 0 failed, 1 skipped')
  t.equal(refused.code, 1)
  t.ok(refused.lines.includes('failed: skipped: test/a › needs root (root)'))
  t.equal((await run(skips, "'needs root'")).code, 0)
  t.equal((await run(skips, "'other'")).code, 1)

  const left = await run(suite('node', ['left out: node tests (no containerd)']))
  t.equal(last(left), '0 passed, 0 failed, 1 skipped')
  t.equal(left.code, 1)
  t.equal((await run(suite('node', ['left out: node tests (no containerd)']), "'node tests'")).code, 0)

  const unnamed = await run(suite('shy', ['7 passed, 0 failed, 2 skipped']))
  t.equal(last(unnamed), '7 passed, 0 failed, 2 skipped')
  t.equal(unnamed.code, 1)
})

await t.test('ci waits for a suite in the background, and judges it like the others', async (t) => {
  const good = await run("begin build 60 bash -c 'sleep 0.2; echo built'\nstage lint 60 true\nfinish build")
  t.equal(last(good), '2 passed, 0 failed, 0 skipped')
  t.equal(good.code, 0)
  const polite = await run(
    'begin idle 60 nice; niceness=5 begin build 60 sh -c "nice; env"; finish idle; finish build; cat "$logs"/*.log',
  )
  const [build = 0, idle = 0] = polite.lines.filter((line) => /^\d+$/.test(line)).map(Number)
  t.ok(build < idle, `niceness ${build} and ${idle}`)
  t.notOk(
    polite.lines.some((line) => line.startsWith('niceness=')),
    'a suite that runs .ci/stages itself has its own',
  )
  const bad = await run('begin build 60 false\nfinish build')
  t.equal(last(bad), '0 passed, 1 failed, 0 skipped')
  t.equal(bad.code, 1)
  const killed = await run('begin build 60 sleep 1\nkill -KILL ${begun[build]}\nfinish build')
  t.equal(last(killed), '0 passed, 1 failed, 0 skipped', 'what was killed before it could say how it ended')
})

await t.test(
  'ci names a suite over its budget of CPU, fails it over twice the budget, and ends one that hangs',
  async (t) => {
    const log = '"$logs/x.log"; printf "1 passed, 0 failed, 0 skipped\\n" >"$logs/x.log"'
    const judged = (user: string, system: string) =>
      `log=${log}; echo ${user} ${system} >"$log.cpu"; judge slow 10 0 "$log" 300`
    t.match(await run(judged('8.5', '1.5')), {
      code: 0,
      lines: ['== slow: 1 passed, 0 skipped; 10.0 s of CPU of 10 s, in 300 s'],
    })
    t.match(await run(judged('8.0', '3.0')), { code: 0, lines: ['== slow: OVER ITS BUDGET'] })
    t.match(await run(judged('20.9', '0.0')), { code: 0, lines: ['== slow: OVER ITS BUDGET'] })
    const twice = await run(judged('0.2', '20.8'))
    t.match(twice, { code: 1, lines: ['== slow: took more than twice its budget'] })
    t.equal(last(twice), '1 passed, 1 failed, 0 skipped')
    t.match(
      twice.lines.join('\n'),
      /^ {2}slow: it took 21\.0 s of CPU, more than twice its budget of 10 s$/m,
      'the end says why',
    )
    const endless = await run('patience=0; stage endless 1 sleep 60')
    t.equal(last(endless), '0 passed, 1 failed, 0 skipped')
    t.match(endless.lines.join('\n'), /exit code 124/)
  },
)

await t.test('ci leaves out stages that would begin after the deadline', async (t) => {
  const late = await run('SECONDS=3600; stage late 60 true')
  t.equal(last(late), '0 passed, 0 failed, 1 skipped')
  t.equal(late.code, 1)
})

/** Parts of the crash suite in bash, the conclusion behind them. */
async function runParts(parts: string): Promise<Run> {
  const script = `set -uo pipefail; . test/crash/parts.sh; ${parts}\nwait; conclude_parts; exit "$failed"`
  return new Promise((resolve) => {
    execFile('bash', ['-c', script], { cwd: project }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), lines: `${stderr}${stdout}`.trimEnd().split('\n') })
    })
  })
}

await t.test('a part of the crash suite that fails, is killed or loses its log fails the suite', async (t) => {
  t.equal((await runParts('part one true\npart two true &')).code, 0)
  t.equal((await runParts('part one true\npart two false &')).code, 1)
  const killed = await runParts('part one true\npart two bash -c "kill -KILL \\$PPID" &')
  t.equal(killed.code, 1)
  t.ok(killed.lines.includes('## two: FAILED, or never ended'))
  t.equal((await runParts('part one true\nrm "$logs/parts"')).code, 1)
  t.equal((await runParts('rm -r "$logs"\npart one true')).code, 1)
})
