/** `status --orphans`, and what the agent is at: from outside. */
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { until } from '../../until.js'
import { holdfast, Node } from '../holdfast.js'

interface Status {
  readonly orphans?: readonly { readonly path: string | null; readonly [field: string]: unknown }[]
  readonly operations: readonly { readonly name: string; readonly state: string; readonly attempt: number }[]
}

await t.test('status --orphans lists just the entries kept for paths that no configuration names', async (t) => {
  const directory = (name: string) => ({ path: `disk/${name}`, history: 2, contents: [{ secret: 'web' }] })
  const node = new Node(t, [directory('kept'), directory('dropped')])
  for (const key of ['1', '2', '3']) {
    node.put('Secret', 'web', { key })
    t.match(await node.run('sync'), { code: 0 })
  }
  const status = async (...args: string[]): Promise<Status> => {
    const { stdout } = await node.run('status', '--orphans', '-o', 'json', ...args)
    return JSON.parse(stdout) as Status
  }
  t.match(await node.run('status', '--orphans'), {
    code: 0,
    stdout: /keeps nothing there for paths that are not configured\n$/,
  })
  t.match(await holdfast(['hold', node.path('disk/dropped')]), { code: 0 })
  node.configure([directory('kept')])
  // The leftovers of a killed publication, of that target and of one that no configuration names any more.
  mkdirSync(node.path('disk/.holdfast-0123456789abcdef-0123456789abcdef'))
  writeFileSync(node.path('disk/.holdfast-0123456789abcdef.lock'), '')
  writeFileSync(node.path('disk/.holdfast-fedcba9876543210.lock'), '')
  const { orphans = [] } = await status()
  t.match(orphans, [
    {
      path: node.path('disk/dropped'),
      directory: node.path('disk'),
      publisher: 'agent',
      there: true,
      held: true,
      pinned: false,
      records: [/^\.holdfast-[0-9a-f]{16}\.4$/],
      generations: [/\.[12]-/, /\.[12]-/],
    },
    { path: null, directory: node.path('disk'), publishedAt: null, leftovers: [/^\.holdfast-0123456789abcdef-/] },
  ])
  t.same(orphans[0]?.leftovers, [])
  t.equal(orphans.length, 2, 'a lock alone is nothing')
  rmSync(node.path('disk/dropped'), { recursive: true })
  const text = await node.run('status', '--orphans')
  t.match(text.stdout, /\nNOT CONFIGURED +PUBLISHED BY +AGE +STATE +KEPT\n/)
  t.match(text.stdout, /\n\S+dropped +the agent +\d+s +gone, held +1 × record, 2 × earlier content\n/)
  t.match(text.stdout, /\nunknown, in \S+disk +- +- +gone +1 × leftover\n/)

  mkdirSync(node.path('content'))
  writeFileSync(node.path('content/file'), 'x')
  for (const name of ['one', 'two']) {
    t.match(await holdfast(['replace', node.path(`by-hand/${name}`), '--parents', '--from', node.path('content')]), {
      code: 0,
    })
  }
  symlinkSync(node.path('by-hand'), node.path('link'))
  const pathsIn = async (...args: string[]) =>
    (await status(...args)).orphans?.map(({ path }) => path).filter((path) => path?.includes('by-hand'))
  t.strictSame(await pathsIn(), [])
  t.strictSame(await pathsIn(node.path('link')), [node.path('by-hand/one'), node.path('by-hand/two')])
  t.strictSame(await pathsIn(node.path('by-hand/two')), [node.path('by-hand/two')])
  t.strictSame(await pathsIn(node.path('nothing')), [])
  t.strictSame(await pathsIn(node.path('by-hand/two/file')), [], 'a file has nothing in it')
  const tooLong = 'x'.repeat(256)
  t.match(await status(node.path(`by-hand/two`), node.path(tooLong)), {
    directories: [{ path: node.path('disk/kept') }],
    orphans: [{ error: null }, {}, {}, { path: null, directory: node.path(tooLong), error: /ENAMETOOLONG/ }],
  })
  t.match(await node.run('status', '--orphans', node.path(tooLong)), {
    code: 0,
    stdout: /\nunknown, in \S+x +- +- +- +not looked at: .*ENAMETOOLONG/,
  })
  t.match(await node.run('status', node.path('by-hand')), {
    code: 2,
    stderr: /by-hand is not a directory of the configuration/,
  })
})

await t.test('status shows a failed operation of the agent, and its next try', async (t) => {
  const afterPublish = [{ exec: ['/bin/false'], retries: 0 }]
  const node = new Node(t, [{ path: 'disk/web', contents: [{ secret: 'web' }], afterPublish }])
  node.put('Secret', 'web', { key: '1' })
  const agent = node.agent()
  await agent.logged('HookFailed')
  const name = `afterPublish ${node.path('disk/web')}`
  const found = await until('the status names it', async () => {
    const { stdout } = await node.run('status', '-o', 'json')
    return (JSON.parse(stdout || '{"operations":[]}') as Status).operations.find(
      (one) => one.name === name && one.state === 'waiting',
    )
  })
  t.match(found, { since: /^20.*Z$/, nextTry: /^20.*Z$/ })
  t.ok(found.attempt > 1)
  t.equal(await agent.end('SIGTERM'), 0)
  const ended = JSON.parse((await node.run('status', '-o', 'json')).stdout) as Status
  t.same(ended.operations, [])
})
