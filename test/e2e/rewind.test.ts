/** etcd is restored from an older backup: the only case in which an older version replaces a newer one. */
import t from 'tap'
import { Cluster } from './cluster.js'
import { readPublished, readTree } from './disk.js'
import { Node } from './node.js'
import { until } from '../until.js'

for (const watchCache of [true, false]) {
  await t.test(
    `the agent follows a restored etcd with the server's watch cache ${watchCache ? 'on' : 'off'}`,
    async (t) => {
      const cluster = await Cluster.start([`--watch-cache=${watchCache}`])
      t.teardown(() => cluster.stop())

      for (const agentIs of ['watching', 'down'] as const) {
        await t.test(`the agent follows a restore while it is ${agentIs}`, async (t) => {
          const namespace = await cluster.namespace()
          await namespace.putSecret('a', { key: 'of the backup' })
          await namespace.putSecret('same', { key: 'as ever' })
          const node = await Node.start(t, namespace, {
            allowed: { secrets: ['a', 'same', 'later'] },
            directories: [
              { path: 'rewound', contents: [{ secret: 'a' }] },
              { path: 'same', contents: [{ secret: 'same' }] },
              { path: 'later', contents: [{ secret: 'later', optional: true }] },
            ],
          })
          const { agent } = node
          const target = node.path('rewound')
          await agent.ready()
          const snapshot = await cluster.snapshotEtcd()
          for (const key of ['1', '2', 'newest']) await namespace.putSecret('a', { key })
          await namespace.putSecret('later', { key: 'made after the backup' })
          await until('the newest is on the disk', () => readPublished(target, 'key') === 'newest')
          await until('the later one too', () => readTree(node.path('later'))?.['key'])

          if (agentIs === 'down') await agent.stop()
          await cluster.restoreEtcd(snapshot)
          if (agentIs === 'down') agent.start()

          await until(
            'the confirmed older version is on the disk',
            () => readPublished(target, 'key') === 'of the backup',
          )
          await until('the log says why', () => agent.logged('HistoryRewound').length > 0)
          t.strictSame(readTree(node.path('same')), { key: 'as ever' })
          t.strictSame(readTree(node.path('later')), { key: 'made after the backup' }, 'kept: onMissing is keep')
          await namespace.putSecret('a', { key: 'after the restore' })
          await until('the watch goes on', () => readPublished(target, 'key') === 'after the restore')
        })
      }
    },
  )
}
