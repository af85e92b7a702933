/*
 * The agent, killed between a durable publication and its hook, and under a drizzle of errors: it loses no hook, keeps no descriptor,
 * and publishes as soon as the errors end.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { kept } from '../../durable/scratch.js'
import { until } from '../../until.js'
import { threadsOf, TracedNode } from './agents.js'

const skip = spawnSync('strace', ['-V']).status === 0 ? false : 'needs strace'

await t.test('killed between barrier 2 and the hook', { skip }, async (t) => {
  const script = 'printf "%s\\n" "$(cat "$0/certificate")" >> "$1"'
  const node = new TracedNode(t, (node) => {
    return { afterPublish: [{ exec: ['/bin/sh', '-c', script, node.target, node.path('hooked')] }] }
  })
  const ran = (): string[] => node.read('hooked')?.trim().split('\n') ?? []

  const first = await node.running()
  // A child process begins with clone(2) or vfork(2) on the thread of JavaScript: nothing else of the agent does there.
  await node.strace([String(first.pid)], ['clone,clone3,vfork,fork:signal=SIGKILL'])
  node.publish('one')
  t.equal(await first.end(), 'SIGKILL', 'killed as it was about to run the hook')
  t.equal(node.version(), 'one', 'what it published is there')
  t.same(ran(), [], 'the hook has not run')

  const second = await node.running()
  // And that it has is recorded: a hook that SIGTERM ends is run again.
  await until('the hook has run', () => second.text.includes('has run'))
  t.same(ran(), ['one'], 'the next agent runs it')
  await second.end('SIGTERM')

  const third = await node.running()
  node.publish('two')
  await until('the next version is published, and its hook has run', () => ran().includes('two'))
  t.equal(await third.end('SIGTERM'), 0)
  t.same(ran(), ['one', 'two'], 'and never again for what it has run for')
  t.same(kept(node.parent), ['lock', 'record'])
})

/**
 * Every how many calls of a kind, on each thread, one fails: so that most publications fail once, and few go on failing until they are
 * backed off from. A publication makes some 30 of those that write, and opens and looks at as many names.
 */
const writing = 'mkdir,fchmod,renameat2,unlink,rmdir,sync_file_range,io_submit,openat2,utimensat'
const looking = 'openat,statx,getdents64'
const drizzles = [
  ...(['EIO', 'ENOSPC', 'EMFILE', 'EINTR'] as const).map((code) => ({
    code,
    calls: writing,
    first: 5,
    step: 13,
  })),
  // The same threads read its own files and its objects, too.
  { code: 'EIO', calls: looking, first: 4, step: 11 },
]
await t.test('an agent under errors of its reads leaks no descriptor', { skip }, async (t) => {
  const node = new TracedNode(t)
  node.publish('v0')
  const agent = await node.running()
  await until('the first version', () => node.version() === 'v0')
  const descriptors = (): string[] => readdirSync(`/proc/${agent.pid}/fd`).sort((a, b) => Number(a) - Number(b))
  // One more, so that everything that is opened once has been.
  node.publish('v1')
  await until('the second version', () => node.version() === 'v1' && kept(node.parent).length === 2)
  // It closes the descriptors of a read again: the fewest of many counts.
  let before = descriptors()
  for (let look = 0; look < 20; look++) {
    await sleep(25)
    const now = descriptors()
    if (now.length < before.length) before = now
  }
  let version = 1
  for (const { code, calls, first, step } of drizzles) {
    const endTrace = await node.strace(threadsOf(agent), [`${calls}:error=${code}:when=${first}+${step}`])
    const injected = (): number => readFileSync(node.path('strace.log'), 'utf8').split('(INJECTED)').length - 1
    // The more threads share the calls, the more publications it takes until one of them comes to its first error.
    for (let round = 0; round < 4 || (injected() < 2 && round < 40); round++) {
      node.publish(`v${++version}`)
      const deadline = performance.now() + 1500
      while (node.version() !== `v${version}` && performance.now() < deadline) await sleep(10)
    }
    await endTrace()
    await until('the last version is published', () => node.version() === `v${version}`)
    t.ok(injected() > 1, `${injected()} times ${code} from ${calls}`)
  }
  node.publish('dry')
  await until('the newest version is published', () => node.version() === 'dry')
  await until(`as many descriptors as before: ${before.join()}`, () => descriptors().length <= before.length)
  t.ok(agent.running, 'it lives')
  t.notMatch(agent.text, /unhandled|Unhandled/)
  t.equal(await agent.end('SIGTERM'), 0)
  t.same(kept(node.parent), ['lock', 'record'])
})
