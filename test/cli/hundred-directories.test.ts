/** What an agent of a hundred directories writes for one change of one of them, and what its /metrics weigh: what both grow by. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { until } from '../until.js'
import { Node } from './holdfast.js'

const count = 100
const limits = { written: 8_000, perDirectory: 1400 }
/** Of the paths in the labels: those of the figure that the limit was set against had so many. */
const pathLength = 29

/**
 * Bytes that the process has passed to write(2) and its kin: sockets, pipes and the log are in it, too. Each write counts eight bytes less: Node's
 * threads wake its loop by a write of eight bytes, and how often they do depends on how long the change takes.
 */
function bytesWritten(pid: number): number {
  const io = readFileSync(`/proc/${pid}/io`, 'utf8')
  return Number(/^wchar: (\d+)$/m.exec(io)?.[1]) - 8 * Number(/^syscw: (\d+)$/m.exec(io)?.[1])
}

/** The status of so many is not asked for all the time. */
const patience = { within: 200_000, every: 200 }

const name = (index: number): string => `d${String(index).padStart(3, '0')}`

await t.test('an agent of 100 directories writes one change, and not the status of the others', async (t) => {
  const node = new Node(t, [])
  const directories = Array.from({ length: count }, (_, index) => ({
    path: node.path(`disk/${name(index)}`),
    contents: [{ secret: name(index) }],
  }))
  node.configure(directories)
  const put = (values: Record<string, string>): void =>
    writeFileSync(
      join(node.objects, 'all.yaml'),
      directories.map((_, index) => secret(name(index), values[name(index)] ?? 'old')).join('\n---\n'),
    )
  put({})
  const agent = node.agentProcess()
  await until('all are published', async () => (await agent.get('/readyz')).status === 200, patience)
  const status = async () =>
    JSON.parse((await node.run('status', '-o', 'json')).stdout || '{}') as {
      operations: unknown[]
      directories: {
        path: string
        conditions: { type: string; status: string }[]
        objects: { resourceVersion: string }[]
      }[]
    }
  await until(
    'the status says that all are fresh, and that the agent is at nothing',
    async () => {
      const { directories, operations } = await status()
      return (
        operations.length === 0 &&
        directories.length === count &&
        directories.every(
          ({ conditions }) => conditions.every((each) => each.status === 'True') && conditions.length === 2,
        )
      )
    },
    patience,
  )

  const { text } = await agent.get('/metrics')
  const lines = text.split('\n').filter((line) => line.includes(`directory="${node.path('disk')}`))
  const shorter = node.path(`disk/${name(0)}`).length - pathLength
  const bytes = Buffer.byteLength(lines.join('\n')) / count - (lines.length / count) * shorter
  t.comment(`/metrics: ${bytes.toFixed(0)} bytes a directory, in ${lines.length / count} lines`)
  t.ok(bytes <= limits.perDirectory, `${bytes} bytes of /metrics a directory`)

  const changed = node.path(`disk/${name(50)}`)
  const version = async () =>
    (await status()).directories.find(({ path }) => path === changed)?.objects[0]?.resourceVersion
  const old = await version()
  const before = bytesWritten(agent.pid)
  put({ [name(50)]: 'new' })
  await until('the status tells of the change', async () => ![old, undefined].includes(await version()), patience)
  const written = bytesWritten(agent.pid) - before
  t.equal(readFileSync(join(changed, 'value'), 'utf8'), 'new')
  t.comment(`one change: ${written} bytes written, the content, its record and the log among them`)
  t.ok(written <= limits.written, `${written} bytes written for one change`)
  t.equal(await agent.end('SIGTERM'), 0)
})

function secret(name: string, value: string): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData: { value } })
}
