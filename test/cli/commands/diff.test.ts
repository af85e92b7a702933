/** `diff`, from outside: what the disk holds, held and must hold, and never a byte of a Secret. */
import { once } from 'node:events'
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { makeCertificate, makeKey } from '../../directories/make-certificates.js'
import { holdfast, holdfastProcess, Node, type Ended } from '../holdfast.js'

const canary = 'CANARY-5d1f'

interface Shown {
  readonly equal: boolean
  readonly notes: readonly string[]
  readonly entries: readonly {
    readonly path: string
    readonly change: string
    readonly differs: readonly string[]
    readonly certificates: readonly object[]
    readonly text: { readonly lines?: readonly string[]; readonly hidden?: string } | null
  }[]
}

/** Each command's output: none of it may hold what a Secret holds, in any form that could be turned back. */
const outputs: Ended[] = []

async function diff(...args: string[]): Promise<Ended> {
  const ended = await holdfast(['diff', ...args])
  outputs.push(ended)
  return ended
}

async function shown(...args: string[]): Promise<Shown & { code: number | null }> {
  const { stdout, code } = await diff(...args, '--show-text', '-o', 'json')
  return { ...(JSON.parse(stdout) as Shown), code }
}

const linesOf = ({ entries }: Shown): string[] =>
  entries
    .filter(({ change }) => change !== 'same')
    .map(({ path, change, differs }) => [change, path, ...differs].join(' '))

const textsOf = ({ entries }: Shown) =>
  Object.fromEntries(entries.flatMap(({ path, text }) => (text ? [[path, text.lines ?? text.hidden]] : [])))

await t.test('diff compares the disk with the source, and one content with another', async (t) => {
  const key = makeKey()
  const contents = [
    { secret: 'web' },
    { configMap: 'settings', into: 'conf' },
    {
      combine: 'all.txt',
      from: [
        { configMap: 'settings', key: 'level' },
        { secret: 'web', key: 'password' },
      ],
    },
  ]
  const node = new Node(t, [{ path: 'disk/web', history: 5, contents }])
  const path = node.path('disk/web')
  const config = ['--config', node.configuration]
  const secrets = { password: `${canary}-1\n`, 'tls.crt': makeCertificate(key), 'tls.key': key }
  node.put('Secret', 'web', secrets)
  node.put('ConfigMap', 'settings', { level: 'info\n', same: 'as before\n' })

  t.match(await diff(path, ...config), { code: 4, stdout: /holdfast has published nothing there[^]*\nadded +all.txt/ })
  t.match(await node.run('sync'), { code: 0 })
  t.match(await diff(path, ...config), { code: 0, stdout: /web: no difference; 8 entries are the same\n$/ })

  node.put('Secret', 'web', { ...secrets, password: `${canary}-2 longer\n`, 'tls.crt': makeCertificate(key) })
  node.put('ConfigMap', 'settings', { level: 'debug\n', same: 'as before\n' })
  const changed = await shown(path, ...config)
  t.equal(changed.code, 4)
  t.strictSame(linesOf(changed), [
    'changed all.txt content',
    'changed conf/level content',
    'changed password content',
    'changed tls.crt content',
  ])
  t.strictSame(textsOf(changed), {
    'all.txt': 'it holds what a Secret gave',
    'conf/level': ['@@ -1 +1 @@', '-info', '+debug'],
    password: 'it holds what a Secret gave',
    'tls.crt': 'it holds what a Secret gave',
  })
  const text = await diff(path, ...config)
  t.match(text.stdout, /\nchanged {2}password +content +0600 +0:0|\d+:\d+ +14 -> 21 +Secret demo\/web\n/)
  t.match(text.stdout, /tls.crt: certificate\n +subject +CN=.*\n[^]* serial +[0-9A-F]+ -> [0-9A-F]+\n/)
  t.match(text.stdout, / key +tls.key belongs to it\n/)
  t.notMatch(text.stdout, /info|debug/, 'only where it is asked for')

  t.match(await node.run('sync'), { code: 0 })
  t.match(await diff(path, '--from', '1'), {
    code: 4,
    stdout: /^from {2}published as 1 at 20.*Z: .*\nto {4}what is on the disk; published as 2 /,
  })
  t.match(await shown(path, '--from', '1', '--to', '2'), { equal: false })
  t.match(await shown(path, '--from', '2', '--to', '2'), { equal: true, code: 0 })
  t.strictSame(linesOf(await shown(path, '--to', '1')), linesOf(changed))
  t.match(await diff(path, '--from', '2', '--to', 'desired', ...config), { code: 0 })
  t.match(await diff(path, '--from', '9'), { code: 1, stderr: /has no content 9; there are 2, 1/ })

  writeFileSync(join(path, 'conf/level'), `${canary}-copied`)
  writeFileSync(join(path, 'added'), canary)
  chmodSync(join(path, 'conf/same'), 0o644)
  const drifted = await shown(path, ...config)
  t.strictSame(linesOf(drifted), ['removed added', 'changed conf/level content', 'changed conf/same mode'])
  t.match(textsOf(drifted), { added: /not known/, 'conf/level': /not known/ })
  t.match(await diff(path, '--from', '2', '--to', '2'), { code: 1, stderr: /somebody has changed it since/ })
  t.equal((await node.run('sync')).code, 0)

  // An administrator's modes stay, where the configuration says so, and are no difference.
  node.configure([{ path: 'disk/web', attributes: 'keep', history: 5, contents }])
  chmodSync(join(path, 'conf/same'), 0o644)
  t.match(await diff(path, ...config), { code: 0 })
  node.configure([{ path: 'disk/web', history: 5, contents }])
  t.equal((await node.run('sync')).code, 0)

  // A person may publish content from anywhere.
  mkdirSync(node.path('content/conf'), { recursive: true })
  writeFileSync(node.path('content/conf/level'), canary)
  t.equal((await holdfast(['replace', path, '--from', node.path('content'), '--force'])).code, 0)
  t.match(textsOf(await shown(path, ...config)), { 'conf/level': /not known to come from a ConfigMap/ })
  t.equal((await node.run('sync')).code, 0)

  // A Secret's part becomes a ConfigMap's, and the other way round; a file becomes a directory.
  node.remove('settings')
  node.put('ConfigMap', 'other', { password: 'public now\n', level: 'x' })
  node.put('Secret', 'private', { level: canary })
  const swapped = [
    {
      configMap: 'other',
      items: [
        { key: 'password', path: 'password' },
        { key: 'level', path: 'tls.key/level' },
      ],
    },
    { secret: 'private', into: 'conf' },
  ]
  node.configure([{ path: 'disk/web', history: 5, contents: swapped }])
  const types = await shown(path, ...config)
  t.match(textsOf(types), {
    password: 'it holds what a Secret gave',
    'conf/level': 'it holds what a Secret gave',
    'conf/same': ['@@ -1 +0,0 @@', '-as before'],
    'tls.key/level': ['@@ -0,0 +1 @@', '+x', '\\ No newline at end of file'],
  })
  t.ok(linesOf(types).includes('changed tls.key type mode'))
  t.match(await holdfast(['hold', path, '--reason', 'INC-3']), { code: 0 })
  t.matchOnly((await shown(path, ...config)).notes, [/is held since 20.* \(INC-3\)/])
  t.match(await diff(path, ...config), { stdout: /\n\S+ is held since / })

  const body = Object.values(secrets).flatMap((value) => value.split('\n').filter((line) => line.length > 8))
  const hidden = [canary, ...body, ...body.map((line) => Buffer.from(line).toString('base64').slice(0, 12))]
  for (const { stdout, stderr } of outputs) {
    t.notOk(
      hidden.some((secret) => !secret.startsWith('-----') && (stdout + stderr).includes(secret)),
      'no byte of a Secret',
    )
    t.notMatch(stdout + stderr, /[0-9a-f]{64}/, 'no digest')
  }
})

await t.test('diff counts the links that consumers of publish: symlink go through', async (t) => {
  const node = new Node(t, [{ path: 'disk/web', publish: 'symlink', contents: [{ configMap: 'web' }] }])
  const path = node.path('disk/web')
  const config = ['--config', node.configuration]
  node.put('ConfigMap', 'web', { key: '1' })
  t.match(await node.run('sync'), { code: 0 })
  t.match(await diff(path, ...config), { code: 0 })
  rmSync(join(path, 'key'))
  chmodSync(path, 0o711)
  t.match(await shown(path, ...config), {
    code: 4,
    equal: false,
    notes: [/not as it was published: mode \., missing key$/],
  })
  t.match(await diff(path, ...config), { code: 4, stdout: /missing key\n\n\d entries are the same\n$/ })
})

await t.test('diff fails where the source or the configuration does not tell the content, and says so', async (t) => {
  const optional = { secret: 'gone', optional: true }
  const node = new Node(t, [{ path: 'disk/web', contents: [{ secret: 'web' }, optional] }])
  const path = node.path('disk/web')
  const config = ['--config', node.configuration]
  t.match(await diff(path, ...config), { code: 1, stderr: /what \S+web must hold is not known: .*Secret demo\/web/ })
  t.match(await diff(node.path('disk/other'), ...config), {
    code: 2,
    stderr: /is not a directory of .*holdfast.yaml, which has/,
  })
  t.match(await diff(path), { code: 2, stderr: /--config FILE is missing/ })
  t.match(await diff(path, '--from', '1'), { code: 1, stderr: /has published nothing at/ })
  t.match(await diff(path, '--from', 'x'), { code: 2, stderr: /number that "holdfast history PATH" lists/ })
  node.put('Secret', 'web', { key: '1' })
  node.put('Secret', 'gone', { other: canary })
  t.match(await node.run('sync'), { code: 0 })
  node.remove('gone')
  t.match(await shown(path, ...config), { equal: true, notes: [/^Secret demo\/gone is gone, or is being deleted/] })
  rmSync(node.objects, { recursive: true })
  t.match(await diff(path, ...config, '--timeout', '50ms'), { code: 2, stderr: /must hold is not known/ })
  mkdirSync(node.objects)
  rmSync(path, { recursive: true })
  writeFileSync(path, 'a file')
  node.put('Secret', 'web', { key: '1' })
  t.matchOnly(linesOf(await shown(path, ...config)), ['changed . type mode', 'added key'])
})

await t.test(
  'diff takes KUBECONFIG where neither the configuration nor a flag names a kubeconfig, and sync does not',
  async (t) => {
    const node = new Node(t, [{ path: 'disk/web', contents: [{ secret: 'web' }] }], {
      source: { namespace: 'demo', kubernetes: {} },
    })
    const asked: string[] = []
    /** It refuses all, for good: nobody asks again, and waits for a timeout. */
    const kubeconfig = async (name: string): Promise<string> => {
      const server = createServer((_, response) => {
        asked.push(name)
        response.writeHead(403).end()
      }).listen(0, '127.0.0.1')
      await once(server, 'listening')
      t.teardown(() => server.close())
      const path = node.path(name)
      const clusters = [
        { name: 'c', cluster: { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } },
      ]
      const contexts = [{ name: 'x', context: { cluster: 'c', user: 'u' } }]
      const users = [{ name: 'u', user: { token: canary } }]
      const head = { apiVersion: 'v1', kind: 'Config', 'current-context': 'x' }
      writeFileSync(path, JSON.stringify({ ...head, clusters, contexts, users }))
      return path
    }
    const env = { KUBECONFIG: await kubeconfig('shell') }
    const answered = async (...args: string[]) => {
      const ended = await holdfastProcess([...args, '--config', node.configuration], { env })
      outputs.push(ended)
      return ended
    }
    const path = node.path('disk/web')
    t.match(await answered('diff', path), { code: 1, stderr: /403/ })
    t.strictSame(new Set(asked.splice(0)), new Set(['shell']))
    t.match(await answered('diff', path, '--kubeconfig', await kubeconfig('named')), { code: 1, stderr: /403/ })
    t.strictSame(new Set(asked.splice(0)), new Set(['named']), 'the flag wins')
    const synced = await answered('sync')
    t.match(synced, { code: 2, stderr: /no kubeconfig is given, and this is not a pod/ })
    t.strictSame(asked, [])
  },
)
