/** What `holdfast fleet` prints, and which arguments it refuses; test/e2e/fleet.test.ts asks real API servers. */
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { overviewText, parseDirectory, waitText } from '../../../src/cli/commands/fleet.js'
import type { WaitResult } from '../../../src/fleet/wait.js'
import { scratch } from '../../durable/scratch.js'
import { holdfast } from '../holdfast.js'
import { kubeconfig } from '../../kubernetes/credentials/kubeconfig-text.js'

const plain = (_: unknown, text: string): string => text
const now = new Date('2026-01-01T12:00:00Z')

await t.test('status sums up first, then names what is not current', async (t) => {
  const overview = {
    at: now.toISOString(),
    nodes: 3,
    reports: 2,
    directories: { current: 3, waiting: 0, held: 0, failed: 1 },
    expires: { node: 'n2', at: '2026-02-01T00:00:00Z' },
    exceptions: [
      { node: 'n1', state: 'NoReport' },
      {
        node: 'n2',
        directory: '/etc/certs',
        state: 'Failed',
        reason: 'NoSpace',
        since: '2026-01-01T11:00:00Z',
        message: 'full',
      },
    ],
    agentVersions: [{ value: '0.2.0', nodes: 2 }],
    configurations: [{ value: `sha256:${'a'.repeat(64)}`, nodes: 2 }],
  } as const
  t.equal(
    overviewText(overview, now, plain),
    `3 nodes, 2 report
4 directories: 3 current, 0 waiting, 0 held, 1 failed
the first certificate ends 2026-02-01T00:00:00Z, on n2

NODE  DIRECTORY   STATE     REASON   SINCE
n1    -           NoReport  -        -
n2    /etc/certs  Failed    NoSpace  60m

AGENT  NODES
0.2.0  2

CONFIGURATION        NODES
sha256:aaaaaaaaaaaa  2
`,
  )
  t.match(overviewText(overview, now, plain, { wide: true }), /MESSAGE\n.*\n.*full/)
  const old = (['Silent', 'OtherBoot', 'Silent'] as const).map((state, index) => ({ node: `n${index}`, state }))
  t.match(overviewText({ ...overview, exceptions: old }, now, plain), /^3 nodes, 2 report \(1 OtherBoot, 2 Silent\)\n/)
  const unanswered = { since: '2026-01-01T11:58:00Z', message: 'ECONNREFUSED' }
  t.match(
    overviewText({ ...overview, unanswered }, now, plain),
    /^the API server has not answered for 2m \(ECONNREFUSED\); before that:\n3 nodes, /,
  )
  const none = { current: 0, waiting: 0, held: 0, failed: 0 }
  t.equal(
    overviewText(
      {
        at: '',
        nodes: 0,
        reports: 0,
        directories: none,
        exceptions: [],
        versions: [],
        agentVersions: [],
        configurations: [],
      },
      now,
      plain,
    ),
    '0 nodes, 0 report\n0 directories: 0 current, 0 waiting, 0 held, 0 failed\n',
    'a table without rows is left out',
  )
  t.equal(
    overviewText(overview, now, plain, { headers: false }),
    `3 nodes, 2 report
4 directories: 3 current, 0 waiting, 0 held, 1 failed
the first certificate ends 2026-02-01T00:00:00Z, on n2

n1  -           NoReport  -        -
n2  /etc/certs  Failed    NoSpace  60m

0.2.0  2

sha256:aaaaaaaaaaaa  2
`,
    '--no-headers takes the first line of each table',
  )
})

const options = {
  secret: { namespace: 'ns', name: 'ca' },
  nodes: 'kubernetes.io/os=linux',
  timeout: 1,
  output: 'text',
  logLevel: 'info',
  logFormat: 'text',
} as const
const wanted = { kind: 'Secret', namespace: 'ns', name: 'ca', uid: 'u', resourceVersion: '7' }

await t.test('wait says what is proven, and what is missing', async (t) => {
  const results: readonly [WaitResult, RegExp][] = [
    [
      { wanted, ended: 'done', isAnswered: true, nodes: [{ node: 'n1', obstacle: undefined, message: '' }] },
      /^all 1 nodes have Secret ns\/ca in version 7 or newer/,
    ],
    [
      {
        wanted,
        ended: 'aborted',
        isAnswered: true,
        nodes: [{ node: 'n1', obstacle: 'Older', message: '/a: it has version 6' }],
      },
      /^0 of 1 nodes .*missing:\n.*\nn1 +Older +\/a: it has version 6\n$/,
    ],
    [
      { wanted, ended: 'aborted', isAnswered: true, nodes: [{ node: 'n1', obstacle: undefined, message: '' }] },
      /^1 of 1 nodes .* by their reports, but the API server has not confirmed it in time\n$/,
    ],
    [{ wanted, ended: 'no-nodes', isAnswered: true, nodes: [] }, /^no node to wait for/],
    [{ wanted, ended: 'gone', isAnswered: true, nodes: [] }, /was deleted or replaced/],
    [{ wanted: undefined, ended: 'gone', isAnswered: true, nodes: [] }, /^Secret ns\/ca does not exist\n$/],
  ]
  for (const [result, text] of results) t.match(waitText(result, options), text)
})

await t.test('wrong arguments are refused before the cluster is asked', async (t) => {
  const wrong: readonly [string[], RegExp][] = [
    [['wait'], /which object\? add --secret/],
    [['wait', '--secret', 'ca'], /ca is not NAMESPACE\/NAME/],
    [['wait', '--secret', 'ns/ca', '--configmap', 'ns/ca'], /cannot be used with/],
    [['status', '--nodes', 'a in'], /--nodes a in/],
    [['status', '--directory', 'certs'], /--directory certs is no absolute path/],
    [['wait', '--secret', 'ns/ca', '--resource-version', 'abc'], /abc is no resourceVersion/],
  ]
  for (const [args, message] of wrong) {
    t.match(await holdfast(['fleet', ...args]), { code: 2, stderr: message }, args.join(' '))
    const { code, stdout } = await holdfast(['fleet', ...args, '-o', 'json'])
    t.match([code, JSON.parse(stdout)], [2, { error: { message } }], `${args.join(' ')}, for a program`)
  }
  t.equal(parseDirectory('/etc//certs/'), '/etc/certs', 'a path is taken in the form that reports have')
})

await t.test(
  'the document of an error has a reason of the contract, and not how a watch would begin again',
  async (t) => {
    const server = createServer((_, reply) => {
      reply.writeHead(403, { 'content-type': 'application/json' })
      reply.end(JSON.stringify({ kind: 'Status', apiVersion: 'v1', code: 403, message: 'no' }))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.teardown(() => server.close())
    const directory = scratch(t)
    const ask = async (port: number) => {
      const file = join(directory, `config-${port}`)
      await writeFile(file, kubeconfig({ server: `http://127.0.0.1:${port}` }, {}))
      return holdfast(['fleet', 'status', '-o', 'json', '--kubeconfig', file])
    }
    for (const [port, reason] of [
      [(server.address() as AddressInfo).port, 'AccessDenied'],
      [1, 'SourceUnavailable'],
    ] as const) {
      const { code, stdout, stderr } = await ask(port)
      t.match([code, JSON.parse(stdout), stderr], [1, { error: { reason } }, new RegExp(`ERROR ${reason} `)])
    }
  },
)
