/** What a pass of `sync` has found is what `status` shows, where no agent has reported since. */
import { rmSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { lastPassFileIn, newerPass, readLastPass } from '../../../src/agent/report/last-pass.js'
import { Node } from '../../cli/holdfast.js'

const web = { path: 'disk/web', contents: [{ secret: 'web' }] }

interface Shown {
  readonly directories: readonly {
    readonly conditions: readonly { readonly type: string; readonly status: string; readonly reason: string }[]
  }[]
}

async function conditions(node: Node): Promise<string[]> {
  const { stdout } = await node.run('status', '-o', 'json')
  const [directory] = (JSON.parse(stdout) as Shown).directories
  return (directory?.conditions ?? []).map(({ type, status, reason }) => `${type} ${status} ${reason}`)
}

await t.test('status tells what sync has found', async (t) => {
  const node = new Node(t, [web])
  t.match(await node.run('sync'), { code: 1, stdout: /ObjectMissing/ })
  t.strictSame(await conditions(node), ['Published False ObjectMissing', 'Fresh Unknown NotConfirmed'])
  const { stdout } = await node.run('status', '-o', 'json')
  t.match(stdout, /nobody has asked the source since \d{4}-.*Z/)
  t.notMatch(stdout, /no agent has reported/)

  node.put('Secret', 'web', { key: '1' })
  t.match(await node.run('sync'), { code: 0 })
  t.equal((await conditions(node))[0], 'Published True Published')

  node.remove('web')
  t.match(await node.run('sync', '--dry-run'), { code: 1 })
  t.equal((await conditions(node))[0], 'Published True Published', 'a dry run records nothing')
  t.match(await node.run('sync'), { code: 1 })
  t.equal((await conditions(node))[0], 'Published False ObjectMissing', 'of what the disk holds, too')

  writeFileSync(node.path('disk/web/key'), 'changed')
  t.equal((await conditions(node))[0], 'Published False SourceUnavailable', 'the disk differs now: that is told')
})

await t.test('a pass that an agent has reported after is history', async (t) => {
  const node = new Node(t, [web])
  t.match(await node.run('sync'), { code: 1 })
  const agent = node.agent()
  await agent.logged('ObjectMissing')
  node.put('Secret', 'web', { key: '1' })
  await agent.logged('Published')
  t.equal(await agent.end('SIGTERM'), 0)
  t.equal((await conditions(node))[0], 'Published True Published')
  const pass = await readLastPass(node.path('state'))
  t.equal(newerPass(pass, undefined), pass)
  t.equal(newerPass(pass, '2000-01-01T00:00:00.000Z'), pass)
  t.equal(newerPass(pass, '2999-01-01T00:00:00.000Z'), undefined)
})

await t.test('without a state directory, or with a file that is none, sync and status go on', async (t) => {
  const node = new Node(t, [web])
  node.put('Secret', 'web', { key: '1' })
  writeFileSync(node.path('state'), 'no directory')
  t.match(await node.run('sync'), { code: 0, stderr: /could not record the findings of this pass/ })
  rmSync(node.path('state'))
  t.match(await node.run('sync'), { code: 0 })
  for (const text of ['', '{}', '[]', 'null', '{"at":"x","directories":[{}]}']) {
    writeFileSync(lastPassFileIn(node.path('state')), text)
    t.equal(await readLastPass(node.path('state')), undefined, text)
    t.equal((await conditions(node))[0], 'Published True Published', text)
  }
})
