/** Contents selected by label, under the program, on objects in files: objects that come and go, and refusals. */
import { readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { until } from '../until.js'
import { holdfast, Node } from './holdfast.js'

const web = { app: 'web' }
const selected = { path: 'disk/web', contents: [{ secrets: { selector: 'app=web', into: 'tls/{name}' } }], history: 9 }

/** Objects of one file, which come into being at once. */
function putTogether(node: Node, file: string, ...objects: [name: string, labels: object, value: string][]): void {
  const items = objects.map(([name, labels, v]) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, labels },
    stringData: { v },
  }))
  writeFileSync(node.path('new'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  renameSync(node.path('new'), join(node.objects, file))
}

/** The files of the target, with their content. */
function tree(node: Node, target = 'disk/web'): Record<string, string> {
  const entries = readdirSync(node.path(target), { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const root = `${node.path(target)}/`
  const relative = files.map((file) => file.slice(root.length)).sort()
  return Object.fromEntries(relative.map((file) => [file, node.read(`${target}/${file}`) ?? '']))
}

const typeAndStatus = ({ type, status }: { type?: unknown; status?: unknown }) => ({ type, status })

const namesIn = (line: { readonly objects?: unknown; readonly [field: string]: unknown }): string[] =>
  (line.objects as { name: string }[]).map(({ name }) => name)

/** Names of the objects in each content, the newest first. */
async function past(node: Node): Promise<string[][]> {
  const { stdout } = await holdfast(['history', node.path('disk/web'), '-o', 'json'])
  return (JSON.parse(stdout) as { contents: { objects: object[]; [field: string]: unknown }[] }).contents.map(namesIn)
}

await t.test('an object that comes or goes under a selector changes the directory as one swap', async (t) => {
  const node = new Node(t, [selected])
  node.put('Secret', 'b', { v: '1' }, web)
  node.put('Secret', 'a', { v: '1' }, web)
  node.put('Secret', 'other', { v: '1' }, { app: 'db' })
  node.put('Secret', 'bare', { v: '1' })
  const agent = node.agentProcess()
  t.strictSame(namesIn(await agent.logged('Published')), ['a', 'b'], 'in the order of their names')
  t.strictSame(tree(node), { 'tls/a/v': '1', 'tls/b/v': '1' })

  // The label is set, and the content changes.
  node.put('Secret', 'other', { v: '2' }, web)
  t.strictSame(namesIn(await agent.logged('Published', 2)), ['a', 'b', 'other'])
  t.equal(tree(node)['tls/other/v'], '2')
  t.strictSame(await past(node), [
    ['a', 'b', 'other'],
    ['a', 'b'],
  ])

  // The label goes, and the content changes with it: that content is never published.
  node.put('Secret', 'b', { v: 'not to be seen' }, { app: 'db' })
  t.strictSame(namesIn(await agent.logged('Published', 3)), ['a', 'other'])
  t.strictSame(tree(node), { 'tls/a/v': '1', 'tls/other/v': '2' })
  t.match(await agent.logged('Removed'), { msg: /Secret demo\/b is no longer published/ })

  // Some come, some go, one changes.
  putTogether(node, 'more.json', ['c', web, '3'], ['d', web, '3'])
  t.strictSame(namesIn(await agent.logged('Published', 4)), ['a', 'c', 'd', 'other'])
  putTogether(node, 'more.json', ['c', {}, '3'], ['d', web, '4'], ['e', web, '4'])
  t.strictSame(namesIn(await agent.logged('Published', 5)), ['a', 'd', 'e', 'other'])
  t.strictSame(tree(node), { 'tls/a/v': '1', 'tls/d/v': '4', 'tls/e/v': '4', 'tls/other/v': '2' })

  node.remove('a')
  t.strictSame(namesIn(await agent.logged('Published', 6)), ['d', 'e', 'other'])
  t.strictSame(tree(node), { 'tls/d/v': '4', 'tls/e/v': '4', 'tls/other/v': '2' })

  t.strictSame(await past(node), [['d', 'e', 'other']], 'what was made from an object that has left does not linger')
  const { text } = await agent.get('/metrics')
  t.match(text, `holdfast_publishes_total{directory="${node.path('disk/web')}",result="replaced"} 5`)
  // The agent writes its status down after it has logged.
  const trues = ['Published', 'Fresh'].map((type) => ({ type, status: 'True' }))
  await until('the status names what is published', async () => {
    const { stdout } = await node.run('status', '-o', 'json')
    const [directory] = (JSON.parse(stdout) as { directories: { objects: object[]; conditions: object[] }[] })
      .directories
    if (directory === undefined || namesIn(directory).join() !== 'd,e,other') return false
    return isDeepStrictEqual(directory.conditions.map(typeAndStatus), trues)
  })
  t.match(await node.run('verify'), { code: 0 })

  // An object that went while no agent ran is gone afterwards, too.
  await agent.end('SIGKILL')
  rmSync(join(node.objects, 'more.json'))
  const again = node.agent()
  t.strictSame(namesIn(await again.logged('Published')), ['other'])
  t.strictSame(tree(node), { 'tls/other/v': '2' })
  t.match(await again.get('/readyz'), { status: 200 })
})

await t.test(
  'a selector without a match holds a required directory back, and leaves an optional part out',
  async (t) => {
    const node = new Node(t, [selected])
    node.put('Secret', 'a', { v: '1' }, { app: 'db' })
    const agent = node.agent()
    t.match(await agent.logged('ObjectMissing'), {
      msg: /no Secret in namespace demo matches app=web: create one, set its label, or make directories\[0\]\.contents\[0\] optional/,
    })
    t.match(await agent.get('/readyz'), { status: 503, text: /ObjectMissing/ })
    node.put('Secret', 'a', { v: '1' }, web)
    await agent.logged('Published')
    node.remove('a')
    await agent.logged('ObjectMissing', 2)
    t.strictSame(tree(node), { 'tls/a/v': '1' }, 'what is published stays')
    t.match(await agent.get('/readyz'), { status: 200 })

    const optional = { secrets: { selector: 'app=web', optional: true } }
    node.put('ConfigMap', 'conf', { port: '80' })
    node.configure([{ path: 'disk/web', contents: [optional, { configMap: 'conf' }] }])
    agent.signal('SIGHUP')
    await agent.logged('Published', 2)
    t.strictSame(tree(node), { port: '80' })
    node.put('Secret', 'b', { v: '1' }, web)
    await agent.logged('Published', 3)
    t.strictSame(tree(node), { 'b/v': '1', port: '80' }, '{name} is the default')
    node.remove('b')
    await agent.logged('Published', 4)
    t.strictSame(tree(node), { port: '80' }, 'onMissing: keep is for objects that are named')
  },
)

await t.test(
  'two objects of a selector that would write one file are both named, and nothing is published',
  async (t) => {
    const contents = [
      { secrets: { selector: 'app=web' } },
      { configMaps: { selector: 'app in (web, db)', items: [{ key: 'v', path: 'v' }] } },
    ]
    const node = new Node(t, [{ path: 'disk/web', contents }])
    node.put('Secret', 'a', { v: '1' }, web)
    node.put('ConfigMap', 'b', { v: '1' }, web)
    const agent = node.agent()
    await agent.logged('Published')
    const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', labels: web }, data: { v: '2' } }
    writeFileSync(join(node.objects, 'conf.json'), JSON.stringify(configMap))
    t.match(await agent.logged('ObjectInvalid'), {
      msg: /"a\/v" is written twice: by directories\[0\]\.contents\[0\], Secret demo\/a, key v, and by directories\[0\]\.contents\[1\], ConfigMap demo\/a, key v/,
    })
    t.strictSame(tree(node), { 'a/v': '1', 'b/v': '1' })
    rmSync(join(node.objects, 'conf.json'))
    node.put('Secret', 'a', { v: '3' }, web)
    await agent.logged('Published', 2)
    await until('the newest is published', () => node.read('disk/web/a/v') === '3')
  },
)

await t.test('sync publishes the objects of a selector, and check names them', async (t) => {
  const items = [{ key: 'tls.crt', path: '{name}.crt', mode: '0644' }]
  const contents = [{ secrets: { selector: 'app=web', into: '.', items } }]
  const node = new Node(t, [{ path: 'disk/web', contents }])
  t.match(await node.run('check'), { stdout: /no file holds an object for Secret demo\/\(app=web\)/ })
  t.match(await node.run('sync', '--timeout', '10s'), {
    code: 1,
    stderr: /no Secret in namespace demo matches app=web/,
  })
  node.put('Secret', 'a', { 'tls.crt': 'A' }, web)
  node.put('Secret', 'b', { 'tls.crt': 'B', more: 'x' }, web)
  t.match(await node.run('check'), { stdout: /Secret demo\/\(app=web\): a and b/ })
  t.match(await node.run('sync', '--dry-run', '-o', 'json'), { code: 0, stdout: /a\.crt/ })
  t.match(await node.run('sync'), { code: 0 })
  t.strictSame(tree(node), { 'a.crt': 'A', 'b.crt': 'B' })
  node.put('Secret', 'c', { more: 'x' }, web)
  t.match(await node.run('sync'), { code: 1, stderr: /Secret demo\/c has no key tls.crt/ })
  node.remove('c')
  node.remove('b')
  t.match(await node.run('sync'), { code: 0 })
  t.strictSame(tree(node), { 'a.crt': 'A' })
})
