/** Many objects at once: more than one connection's streams. */
import t from 'tap'
import { Cluster } from './cluster.js'
import { readTree } from './disk.js'
import { Node } from './node.js'
import { connections } from './process-figures.js'
import { until } from './until.js'

t.setTimeout(180_000)

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())

const directories = 10
const perDirectory = 20

await t.test('200 objects, created at once and updated at once', async (t) => {
  const namespace = await cluster.namespace()
  const names = (directory: number): string[] =>
    Array.from({ length: perDirectory }, (_, index) => `secret-${directory}-${index}`)
  const all = Array.from({ length: directories }, (_, directory) => names(directory))
  const node = await Node.start(t, namespace, {
    allowed: { secrets: all.flat() },
    directories: all.map((secrets, directory) => ({
      path: `directory-${directory}`,
      contents: secrets.map((secret) => ({ secret, into: secret })),
    })),
  })
  const putAll = (version: string): Promise<unknown> =>
    Promise.all(all.flat().map((name) => namespace.putSecret(name, { name, version })))
  const expected = (version: string): object[] =>
    all.map((secrets) =>
      Object.fromEntries(
        secrets.flatMap((name) => [
          [`${name}/name`, name],
          [`${name}/version`, version],
        ]),
      ),
    )
  const onDisk = (): (object | undefined)[] => all.map((_, directory) => readTree(node.path(`directory-${directory}`)))

  for (const version of ['1', '2', '3']) {
    await putAll(version)
    const started = performance.now()
    const files = Object.values(expected(version)).reduce((sum, tree) => sum + Object.keys(tree).length, 0)
    await until(`${files} files are on the disk`, () => {
      const found = onDisk().flatMap((tree) => Object.entries(tree ?? {}))
      const current = found.filter(([file, text]) => !file.endsWith('/version') || text === version)
      return current.length === files
    })
    t.comment(`version ${version}: ${Math.round(performance.now() - started)} ms after the last was written`)
    t.strictSame(onDisk(), expected(version))
  }
  await node.agent.ready()
  const open = connections(node.agent.pid, cluster.api.port)
  t.ok(open >= 2 && open <= 4, `${open} connections for 200 watches, 100 streams each`)
})
