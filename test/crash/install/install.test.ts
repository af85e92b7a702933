/*
 * An installation is killed before each of its calls to the file system, and each of them fails: the manifest directory
 * holds the old manifests or the new ones, whole; the revision that the manifest names is whole; the next run after a failure, and the
 * installation of a later revision after a death, completes and leaves nothing behind. HOLDFAST_CRASH_ALL=1 tries every call, instead of
 * a sample; HOLDFAST_SEED chooses another sample.
 */
import { readdirSync } from 'node:fs'
import t from 'tap'
import { DurableWriteError } from '../../../src/durable/errors.js'
import { DurableCalls } from '../../../src/durable/index.js'
import { failure, intercepted, Killed } from '../../durable/intercepted.js'
import { replay, seed } from '../../seed.js'
import { CrashNode } from './node.js'

const all = process.env.HOLDFAST_CRASH_ALL === '1'
// Every call takes ten minutes and more where the machine has other work.
t.comment(replay)

const node = new CrashNode()
t.teardown(() => node.remove())

/** Every call, or each `every`th, beginning where the seed says; the last ones always. */
function sample(calls: number, every: number): number[] {
  const numbers = Array.from({ length: calls }, (_, index) => index + 1)
  return all ? numbers : numbers.filter((n) => n % every === seed % every || n > calls - 5)
}

const situations = [
  { name: 'the first revision of a node', before: [], then: 2 },
  { name: 'a revision after another', before: [1], then: 2 },
]

for (const { name, before, then } of situations) {
  const fresh = async (): Promise<void> => {
    node.clear()
    for (const revision of before) await node.install(revision, new DurableCalls())
  }
  const possible = [before[0], then]

  await t.test(name, async (t) => {
    await fresh()
    let calls = 0
    const watched = intercepted((call) => {
      calls++
      const faults = /^(rename|removeFile|createFile)$/.test(call) ? node.faults(possible) : []
      if (faults.length > 0) throw new Error(`before call ${calls}, ${call}: ${faults.join('; ')}`)
    })
    const result = await node.install(then, new DurableCalls(watched.fs))
    t.match(result.manifests, [{ outcome: before.length ? 'replaced' : 'created' }, {}])
    t.same(node.faults([then]), [])
    t.equal(watched.open.size, 0, 'no descriptor stays open')
    t.ok(calls > 100, `${calls} calls`)
    const wrong: string[] = []

    const converges = async (revision: number, when: string): Promise<void> => {
      try {
        await node.install(revision, new DurableCalls())
      } catch (error) {
        wrong.push(`${when}: the next run fails: ${String(error)}`)
        return
      }
      const found = [...node.faults([revision]), ...node.leftovers()]
      if (found.length > 0) wrong.push(`${when}, then revision ${revision}: ${found.join('; ')}`)
    }

    // crash/model (static pod: install) installs the same revision once more after a stop at each change.
    for (const n of sample(calls, 10)) {
      await fresh()
      let at = ''
      const { fs } = intercepted((call, _args, index) => {
        if (index === n) at = call
        if (index >= n) throw new Killed()
      })
      await node.install(then, new DurableCalls(fs)).catch(() => undefined)
      const when = `killed before call ${n}, ${at}`
      const faults = node.faults(possible)
      if (faults.length > 0) wrong.push(`${when}: ${faults.join('; ')}`)
      await converges(then + 1, when)
    }

    for (const code of ['EIO', 'ENOSPC']) {
      for (const n of sample(calls, 25)) {
        await fresh()
        let at = ''
        const { fs, open } = intercepted((call, _args, index) => {
          if (index !== n) return
          at = call
          throw failure(code, call)
        })
        const error = await node.install(then, new DurableCalls(fs)).then(
          () => undefined,
          (thrown: unknown) => thrown,
        )
        const when = `${code} from call ${n}, ${at}`
        if (error !== undefined && !(error instanceof DurableWriteError))
          wrong.push(`${when}: throws ${error instanceof Error ? error.stack : typeof error}`)
        const faults = node.faults(error === undefined ? [then] : possible)
        if (faults.length > 0) wrong.push(`${when}: ${faults.join('; ')}`)
        if (open.size > 0) wrong.push(`${when}: ${open.size} descriptors are open`)
        await converges(then, when)
      }
    }
    t.same(wrong, [])
  })
}

await t.test('given up before the manifests change, and never in between', async (t) => {
  node.clear()
  await node.install(1, new DurableCalls())
  let calls = 0
  await node.install(2, new DurableCalls(intercepted(() => calls++).fs))
  const outcomes = new Set<string>()
  for (const n of sample(calls, 15)) {
    node.clear()
    await node.install(1, new DurableCalls())
    const stop = new AbortController()
    const { fs } = intercepted((_call, _args, index) => {
      if (index === n) stop.abort(new Error('stopped'))
    })
    const done = await node.install(2, new DurableCalls(fs), stop.signal).then(
      () => true,
      () => false,
    )
    outcomes.add(String(done))
    t.same(node.faults([done ? 2 : 1]), [], `stopped at call ${n}: ${done ? 'done' : 'given up'}`)
  }
  t.same([...outcomes].sort(), ['false', 'true'])
})

await t.test('a revision of 30 Secrets and 10 ConfigMaps costs four barriers: twice one directory', async (t) => {
  node.clear()
  const plan = await node.plan(1)
  const files = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) =>
      ['tls.crt', 'tls.key'].map((key) => [`secrets/s${index}/${key}`, 'x']),
    ).flat() as [string, string][],
  )
  const counting = () => {
    const syncs: number[] = []
    const { fs } = intercepted((call, args) => {
      if (call === 'sync') syncs.push((args[0] as unknown[]).length)
    })
    return { durable: new DurableCalls(fs), syncs }
  }
  const one = counting()
  await one.durable.publishDirectories([{ target: `${node.resources}/one`, files }], undefined)
  const both = counting()
  const { install } = await import('../../../src/static-pods/install/install.js')
  if (plan.directory === undefined) throw new Error('a plan without a directory')
  const { silent } = await import('../../../src/log.js')
  await install(
    { ...plan, directory: { ...plan.directory, files: { ...plan.directory.files, ...files } } },
    {
      durable: both.durable,
      log: silent,
      signal: new AbortController().signal,
      manifestDirectory: node.manifests,
      manifestLock: undefined,
      timeLeft: () => 0,
      requireProven: false,
      allowOlder: false,
      checkHostPaths: false,
      warnOfHostPaths: false,
    },
  )
  t.equal(one.syncs.length, 2)
  t.equal(both.syncs.length, 4)
  // library-go's order: two fsyncs for each file, two for each directory that is swapped, one for each manifest and copy.
  const libraryGo = 80 * 2 + 40 * 2 + 4
  t.comment(`${both.syncs.length} barriers; in library-go's order: ${libraryGo} fsyncs, one after the other`)
  t.ok(readdirSync(node.manifests).includes('web-pod.yaml'))
})
