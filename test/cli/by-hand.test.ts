/** Commands of a person on what an agent publishes: the agent would undo them, so they say so first. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { readRecord, replaceDirectory, replaceFile } from '../../src/durable/index.js'
import { until } from '../until.js'
import { holdfast, Node } from './holdfast.js'

const web = { path: 'disk/web', contents: [{ secret: 'web' }] }
const quiet = ['--log-level', 'error']
/** The agent compares each second. */
const patient = ['--lock-timeout', '10m']

await t.test("replace refuses an agent's target without --force; after a hold, its content stays", async (t) => {
  const node = new Node(t, [web], { driftInterval: '1s' })
  node.put('Secret', 'web', { password: 'one' })
  t.match(await node.run('sync', ...quiet), { code: 0 })
  const path = node.path('disk/web')
  mkdirSync(node.path('from'))
  writeFileSync(node.path('from/password'), 'by hand')
  const replace = (...args: string[]) =>
    holdfast(['replace', path, '--from', node.path('from'), ...args, ...patient, ...quiet])
  const refused = await replace('-o', 'json')
  t.equal(refused.code, 1)
  t.match(JSON.parse(refused.stdout), {
    error: {
      published: false,
      path,
      message: `an agent or "holdfast sync" publishes ${path}, and would undo this; nothing was changed; change the objects that it is made from, or run "holdfast hold ${path}" and then this with --force: it stays until "holdfast release ${path}"`,
    },
  })
  t.equal(node.read('disk/web/password'), 'one')

  t.match(await holdfast(['hold', path, '--reason', 'INC-7']), { code: 0 })
  t.match(await replace(), { code: 1, stderr: /would undo this/ }, 'whose it is, held or not')
  t.match(await replace('--force'), { code: 0, stdout: /^replaced / })
  t.match((await readRecord(path))?.hold, { reason: 'INC-7' })
  const agent = node.agent()
  await agent.logged('Held')
  await until('its status says so', () => node.read('state/status.json')?.includes('INC-7'))
  t.equal(node.read('disk/web/password'), 'by hand')
  t.match(await holdfast(['release', path, ...patient]), { code: 0 })
  await until('the agent publishes again', () => node.read('disk/web/password') === 'one')

  t.match(await holdfast(['hold', path, ...patient]), { code: 0 })
  t.match(await replace('--force', '--release'), { code: 0 })
  t.equal((await readRecord(path))?.hold, undefined, 'the hold ends with --release')
})

await t.test('write is refused without --force, before a command runs', async (t) => {
  const node = new Node(t, [])
  const file = node.path('file')
  await replaceFile(file, 'one', { publisher: 'agent' })
  const write = (...args: string[]) => holdfast(['write', file, ...args, ...quiet], { input: 'two' })
  const refusal = { code: 1, stderr: /an agent or .*holdfast sync.* publishes .*file, and would undo this/ }
  t.match(await write(), refusal)
  t.match(await holdfast(['write', file, ...quiet, '--', 'touch', node.path('ran')]), refusal)
  t.notOk(existsSync(node.path('ran')))
  t.match(await write('--force'), { code: 0 })
  t.match(await holdfast(['write', file, ...quiet], { input: 'three' }), { code: 0 }, 'it is a person’s now')
  t.equal(readFileSync(file, 'utf8'), 'three')
})

await t.test('remove is refused without --force until the directory has left the configuration', async (t) => {
  const node = new Node(t, [web])
  node.put('Secret', 'web', { password: 'one' })
  t.match(await node.run('sync', ...quiet), { code: 0 })
  const path = node.path('disk/web')
  const remove = (...args: string[]) => holdfast(['remove', path, ...args, '--state-directory', node.path('state')])
  t.match(await remove(), {
    code: 1,
    stderr:
      /an agent or .*holdfast sync.* publishes .*web, and would publish it again; .*take it out of the configuration/,
  })
  t.ok(existsSync(path))
  t.match(await remove('--force'), { code: 0 })
  t.notOk(existsSync(path))
})

await t.test("the library publishes to an agent's target without consent", async (t) => {
  const node = new Node(t, [web])
  node.put('Secret', 'web', { password: 'one' })
  t.match(await node.run('sync', ...quiet), { code: 0 })
  t.match(await replaceDirectory(node.path('disk/web'), { files: { password: 'two' } }), { outcome: 'replaced' })
})
