/** `status` once an agent has run and ended: what it says is of the configuration, the records and the disk as they are now. */
import { rmSync } from 'node:fs'
import t from 'tap'
import { Node } from '../cli/holdfast.js'

interface Shown {
  readonly path: string
  readonly conditions: readonly { readonly type: string; readonly status: string; readonly reason: string }[]
}

await t.test('after its end, directories are compared with the disk, as they are configured now', async (t) => {
  const web = { path: 'disk/web', contents: [{ secret: 'web' }] }
  const kept = { path: 'disk/kept', contents: [{ secret: 'web' }] }
  const node = new Node(t, [web, kept])
  node.put('Secret', 'web', { key: '1' })
  const agent = node.agent()
  await agent.logged('Published', 2)
  t.equal(await agent.end('SIGTERM'), 0)
  rmSync(node.path('disk/web'), { recursive: true })
  node.configure([web, kept, { path: 'disk/added', contents: [{ secret: 'web' }] }])
  const shown = await node.run('status', '-o', 'json')
  const { directories, agent: ended } = JSON.parse(shown.stdout) as { directories: Shown[]; agent: object }
  t.match(ended, { stoppedAt: String })
  const fresh = {
    type: 'Fresh',
    status: 'Unknown',
    reason: 'NotConfirmed',
    message: /nobody has asked the source since/,
  }
  t.match(directories, [
    { path: node.path('disk/web'), conditions: [{ type: 'Published', status: 'False', message: /differs/ }, fresh] },
    { path: node.path('disk/kept'), conditions: [{ type: 'Published', status: 'True' }, fresh], confirmedAt: String },
    { path: node.path('disk/added'), conditions: [{ type: 'Published', status: 'False' }, fresh] },
  ])
  t.match((await node.run('status')).stdout, /ended in order/)
})
