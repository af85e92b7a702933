/** `status` after the end of an agent: its answers come from the present configuration, records and disk. */
import { chmodSync, readdirSync, rmSync } from 'node:fs'
import t from 'tap'
import { namesFor } from '../../../src/durable/path/names.js'
import { holdfast, Node } from '../../cli/holdfast.js'
import { issue, makeAuthority } from '../../kubernetes/connection/certificates.js'

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

await t.test('a record to which others may write spoils the line of its own path alone', async (t) => {
  const contents = [{ secret: 'web' }]
  const node = new Node(t, [{ path: 'disk/old', contents }])
  node.put('Secret', 'web', { key: '1' })
  t.match(await node.run('sync'), { code: 0 })
  node.configure([
    { path: 'disk/new', movedFrom: 'disk/old', contents },
    { path: 'disk/other', contents },
  ])
  t.match(await node.run('sync'), { code: 0 })
  const record = readdirSync(node.path('disk')).find((name) => namesFor('new').sequenceOf(name) !== undefined) ?? ''
  chmodSync(node.path(`disk/${record}`), 0o606)
  const { directories } = JSON.parse((await node.run('status', '-o', 'json')).stdout) as { directories: Shown[] }
  const published = new Map(directories.map(({ path, conditions: [condition] }) => [path, condition]))
  const message = new RegExp(`everybody may write to .*${record}`)
  t.match(published.get(node.path('disk/new')), { status: 'Unknown', reason: 'TargetUnfit', message })
  t.match(published.get(node.path('disk/other')), { status: 'True' })
})

await t.test(
  'without an agent, status tells a hold, a rollback and an expired certificate, as JSON and as text',
  async (t) => {
    const directories = ['held', 'pinned', 'expired', 'drifted'].map((name) => ({
      path: `disk/${name}`,
      contents: [{ secret: name }],
      history: 2,
    }))
    const node = new Node(t, directories)
    for (const name of ['held', 'pinned', 'drifted']) node.put('Secret', name, { key: '1' })
    node.put('Secret', 'expired', { 'tls.crt': issue(makeAuthority('ca'), { name: 'web', days: -1 }).certificate })
    t.match(await node.run('sync'), { code: 0 })
    node.put('Secret', 'pinned', { key: '2' })
    t.match(await node.run('sync'), { code: 0 })
    const quiet = ['--log-level', 'error']
    t.match(await holdfast(['hold', node.path('disk/held'), '--reason', 'INC-7', ...quiet]), { code: 0 })
    t.match(await holdfast(['hold', node.path('disk/drifted'), '--reason', 'INC-8', ...quiet]), { code: 0 })
    t.match(await holdfast(['rollback', node.path('disk/pinned'), '--pin', 'released', ...quiet]), { code: 0 })
    rmSync(node.path('disk/drifted/key'))

    const shown = await node.run('status', '-o', 'json')
    const published = (JSON.parse(shown.stdout) as { directories: Shown[] }).directories.map(
      ({ conditions }) => conditions.find(({ type }) => type === 'Published') ?? {},
    )
    t.match(published, [
      { status: 'True', reason: 'Held', message: /disk\/held is held since .* \(INC-7\)$/ },
      { status: 'True', reason: 'RolledBack', message: /disk\/pinned is rolled back since .*, until it is released$/ },
      { status: 'True', reason: 'CertificateExpired', message: /^tls\.crt: a certificate expired at / },
      { status: 'False', message: /differs from what was published: .*; .*disk\/drifted is held since .* \(INC-8\)$/ },
    ])
    const text = (await node.run('status')).stdout
    for (const line of [/ Held /, / RolledBack /, / CertificateExpired /, /INC-7/, /until it is released/, /INC-8/])
      t.match(text, line)
  },
)
