/** Commands that examine staged content: where they find it, their rights on it, and their end. */
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  existsSync,
  readlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { checkContent } from '../../src/directories/content-check.js'
import { HookError } from '../../src/directories/hook-error.js'
import { silent } from '../../src/log.js'
import { signalRunning, stateOf } from '../processes.js'
import { SimulatedTime } from '../simulated-time.js'
import { until } from '../until.js'
import { canary, policy } from './hook-outcome.js'

class Scene {
  readonly root: string
  readonly log: string[] = []

  constructor(t: Test) {
    this.root = mkdtempSync(join(tmpdir(), 'holdfast-check-'))
    t.teardown(() => rmSync(this.root, { recursive: true, force: true }))
    mkdirSync(join(this.root, 'etc/.staged'), { recursive: true })
    writeFileSync(join(this.root, 'etc/.staged/conf'), 'new')
    mkdirSync(join(this.root, 'etc/beside'))
    writeFileSync(join(this.root, 'etc/beside/file'), 'beside')
    writeFileSync(join(this.root, 'etc/plain'), 'plain')
    symlinkSync('plain', join(this.root, 'etc/link'))
  }

  get content() {
    return { directory: join(this.root, 'etc/.staged'), target: join(this.root, 'etc/web'), digest: 'sha256:0' }
  }

  /** The check's verdict, '' where it accepts; `script` finds {dir} in $1, and the scene in $2. */
  async run(script: string, more: { timeout?: number; signal?: AbortSignal } = {}): Promise<string> {
    const { timeout = policy.timeout, signal = new AbortController().signal } = more
    const command = ['sh', '-c', script, 'sh', '{dir}', this.root, canary]
    const note = (fields: object, message: string) => void this.log.push(`${JSON.stringify(fields)} ${message}`)
    const log = { debug: note, info: note, warn: note, error: note }
    try {
      await checkContent({ ...policy, type: 'exec', name: 'exec sh', command, timeout }, this.content, { signal, log })
      return ''
    } catch (error) {
      if (!(error instanceof HookError)) throw error
      return error.message
    } finally {
      t.notMatch(this.log.join('\n'), canary, 'nothing secret is logged')
    }
  }

  read(name: string): string {
    return readFileSync(join(this.root, name), 'utf8')
  }
}

const isRoot = process.getuid?.() === 0

await t.test(
  'a check accepts with 0 and rejects with any other code; holdfast counts its output, and shows none',
  async (t) => {
    const scene = new Scene(t)
    t.equal(await scene.run('grep -q new "$1/conf"'), '')
    t.equal(await scene.run('cat "$1/conf"; echo $3 >&2; exit 2'), 'exec sh: exit code 2; its output is not shown')
    t.match(scene.log.at(-1), /"exitCode":2/)
  },
)

await t.test(
  'as root, a check finds the new content at the target’s own path, and no other process does',
  { skip: !isRoot && 'needs root' },
  async (t) => {
    const scene = new Scene(t)
    mkdirSync(join(scene.root, 'etc/web'))
    writeFileSync(join(scene.root, 'etc/web/conf'), 'old')
    t.equal(
      await scene.run('cat "$2/etc/web/conf" > "$2/seen"; echo "$1" > "$2/dir"; readlink /proc/self/ns/mnt > "$2/ns"'),
      '',
    )
    t.equal(scene.read('seen'), 'new')
    t.equal(scene.read('dir').trim(), scene.content.target)
    t.not(scene.read('ns').trim(), readlinkSync('/proc/self/ns/mnt'))
    t.equal(scene.read('etc/web/conf'), 'old')
  },
)

await t.test(
  'as root, a check without a target yet finds all else beside it in its place',
  { skip: !isRoot && 'needs root' },
  async (t) => {
    const scene = new Scene(t)
    const script = 'cd "$2/etc" && cat web/conf beside/file plain link > "$2/seen"; echo x > beside/file'
    t.equal(await scene.run(script), '')
    t.equal(scene.read('seen'), 'newbesideplainplain')
    t.equal(scene.read('etc/beside/file'), 'x\n', 'it is no copy')
    t.notOk(existsSync(scene.content.target))
  },
)

await t.test('a check that overruns its time ends, with the processes that it has started', async (t) => {
  const scene = new Scene(t)
  const start =
    '(trap "" TERM; read pid rest < /proc/self/stat; echo $pid > "$2/pid"; exec sleep 60) > /dev/null 2>&1 & while [ ! -s "$2/pid" ]; do sleep 0.02; done;'
  const time = new SimulatedTime(t)
  const gone = () => {
    const pid = scene.read('pid').trim()
    rmSync(join(scene.root, 'pid'))
    return until(`process ${pid} is gone`, () => {
      return ['Z', undefined].includes(stateOf(`/proc/${pid}`))
    })
  }
  const late = scene.run(`${start} sleep 60`, { timeout: 2000 })
  await until('it has started another', () => scene.read('pid') !== '')
  await time.advance(2_000)
  t.equal(await late, 'exec sh: still running after 2000 ms: holdfast ended it')
  await gone()
  t.equal(await scene.run(start), '')
  await gone()
})

await t.test(
  'as root, the processes that a command starts end with it, in a new session, too',
  { skip: !isRoot && 'needs root' },
  async (t) => {
    const scene = new Scene(t)
    // procfs tells the number that a process has outside.
    const daemon = 'read pid rest < /proc/self/stat; echo $pid > "$0/daemon"; exec sleep 60'
    const start = `setsid sh -c '${daemon}' "$2" > /dev/null 2>&1 & while [ ! -s "$2/daemon" ]; do sleep 0.02; done;`
    for (const { how, script, timeout, said } of [
      { how: 'accepts', script: start, timeout: policy.timeout, said: '' },
      {
        how: 'is over its time',
        script: `${start} sleep 60`,
        timeout: 2000,
        said: 'exec sh: still running after 2000 ms: holdfast ended it',
      },
    ]) {
      const time = new SimulatedTime(t)
      const verdict = scene.run(script, { timeout })
      await until('the daemon runs', () => Number(scene.read('daemon')) > 0)
      await time.advance(2_000)
      t.equal(await verdict, said, how)
      const pid = Number(scene.read('daemon'))
      rmSync(join(scene.root, 'daemon'))
      t.ok(pid > 0)
      t.ok(['Z', undefined].includes(stateOf(`/proc/${pid}`)), `the daemon of a command that ${how} has ended`)
      signalRunning(pid, 'SIGKILL')
    }
  },
)

await t.test('an abandoned check ends with the reason, and says nothing about the content', async (t) => {
  const scene = new Scene(t)
  const abort = new AbortController()
  const run = scene.run('echo > "$2/started"; sleep 60', { signal: abort.signal })
  const ended = t.rejects(run, { message: 'the end' })
  await until('it runs', () => existsSync(join(scene.root, 'started')))
  abort.abort(new Error('the end'))
  await ended
  t.equal(await scene.run('exit 1').then((said) => said.split(';')[0]), 'exec sh: exit code 1')
})

await t.test('two checks run at a time; a waiting one is abandoned like any other', async (t) => {
  const scene = new Scene(t)
  mkdirSync(join(scene.root, 'running'))
  const script = 'me=$(mktemp "$2/running/XXXXXX"); ls "$2/running" | wc -l >> "$2/counts"; sleep 0.2; rm "$me"'
  const said = await Promise.all(Array.from({ length: 5 }, () => scene.run(script)))
  t.strictSame(said, ['', '', '', '', ''])
  const counts = scene.read('counts').trim().split('\n').map(Number)
  t.ok(Math.max(...counts) <= 2, counts.join())
  const abort = new AbortController()
  const untilGo = 'while [ ! -e "$2/go" ]; do sleep 0.05; done'
  const busy = [scene.run(untilGo), scene.run(untilGo)]
  const late = t.rejects(scene.run('echo > "$2/late"', { signal: abort.signal }), { message: 'the end' })
  abort.abort(new Error('the end'))
  await late
  writeFileSync(join(scene.root, 'go'), '')
  t.strictSame(await Promise.all(busy), ['', ''])
  t.notOk(existsSync(join(scene.root, 'late')))
})

await t.test('a check that did not start, or that SIGKILL ended, is no verdict on the content', async (t) => {
  const scene = new Scene(t)
  const verdict = async (command: string[]) => {
    const { signal } = new AbortController()
    const hook = { ...policy, type: 'exec', name: 'x', command } as const
    return checkContent(hook, scene.content, { signal, log: silent }).then(
      () => 'accepted',
      (error: unknown) => error instanceof HookError && error.inconclusive,
    )
  }
  t.equal(await verdict(['/no/such/program']), true)
  t.equal(await verdict(['sh', '-c', 'kill -KILL $$']), true)
  t.equal(await verdict(['sh', '-c', 'exit 1']), false)
  t.equal(await verdict(['sh', '-c', 'kill -SEGV $$']), false)
})
