/** hold and release, from outside: their output, each other command's answer about a held path, and a running agent's. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { until } from '../../until.js'
import { holdfast, Node, scratch } from '../holdfast.js'

await t.test('hold keeps every command from the directory until a release', async (t) => {
  const root = scratch(t)
  const [from, file] = [join(root, 'from'), join(root, 'file')]
  const target = join(root, 'certs')
  mkdirSync(from)
  writeFileSync(join(from, 'a'), 'old')
  const quiet = ['--log-level', 'error']
  await holdfast(['replace', target, '--from', from, ...quiet])
  await holdfast(['write', file, ...quiet], { input: 'old' })
  t.match(await holdfast(['hold', target, '--reason', 'INC-7', '--for', '2h', ...quiet]), {
    code: 0,
    stdout: new RegExp(`^held ${target} until \\d{4}-.*Z\n$`),
    stderr: '',
  })
  t.match(await holdfast(['hold', file]), { code: 0, stdout: `held ${file}\n` })
  writeFileSync(join(from, 'a'), 'new')
  t.match(await holdfast(['replace', target, '--from', from]), {
    code: 1,
    stderr: new RegExp(`${target} is held since .* until .* \\(INC-7\\).*holdfast release ${target}`, 's'),
  })
  t.match(await holdfast(['write', file], { input: 'new' }), { code: 1, stderr: /is held since/ })
  t.equal(readFileSync(join(target, 'a'), 'utf8') + readFileSync(file, 'utf8'), 'oldold')

  t.match(await holdfast(['release', target, '-o', 'json']), { code: 0, stdout: /"released": true/ })
  t.match(await holdfast(['release', target]), { code: 0, stdout: `${target} was not held\n` })
  t.match(await holdfast(['replace', target, '--from', from, ...quiet]), { code: 0, stdout: /^replaced / })
  t.match(await holdfast(['write', file, '--release', ...quiet], { input: 'new' }), { code: 0, stdout: /^replaced / })
  t.match(await holdfast(['write', file, ...quiet], { input: 'newer' }), { code: 0 }, 'which has ended the hold')
})

await t.test('hold refuses an unfit target, says why, and makes nothing', async (t) => {
  const root = scratch(t)
  const nothing = join(root, 'nothing', 'here')
  t.match(await holdfast(['hold', nothing]), { code: 1, stderr: /has published nothing at .*nothing\/here/ })
  t.notOk(existsSync(join(root, 'nothing')))
  t.match(await holdfast(['release', join(root, 'none')]), { code: 1, stderr: /has published nothing at/ })
  t.match(await holdfast(['hold', nothing, '--for', 'ever']), { code: 2, stderr: /duration/ })
  t.match(await holdfast(['hold']), { code: 2 })
})

await t.test(
  'a running agent obeys a hold at once, before its next comparison, and goes on after the release',
  async (t) => {
    const node = new Node(t, [{ path: 'disk/web', contents: [{ secret: 'web' }] }])
    node.put('Secret', 'web', { password: 'one' })
    const path = node.path('disk/web')
    const agent = node.agent()
    await agent.logged('Published')
    const condition = async (): Promise<Record<string, string> | undefined> => {
      const { directories } = JSON.parse((await node.run('status', '-o', 'json')).stdout) as {
        directories: { conditions: Record<string, string>[] }[]
      }
      return directories[0]?.conditions.find(({ type }) => type === 'Published')
    }
    const metric = async (): Promise<string | undefined> =>
      /holdfast_directory_held\{.*\} (\d)/.exec((await agent.get('/metrics')).text)?.[1]
    t.equal(await metric(), '0')

    t.match(await holdfast(['hold', path, '--reason', 'INC-8']), { code: 0 })
    await until('the agent says that it is held', async () => (await metric()) === '1')
    await until('so does its status', async () => (await condition())?.reason === 'Held')
    t.match(await condition(), { status: 'True', message: /INC-8.*nothing newer is known/ })

    node.put('Secret', 'web', { password: 'two' })
    t.match(await agent.logged('Held'), { level: 'warn', message: undefined, directory: path })
    t.equal(node.read('disk/web/password'), 'one')
    await until('something newer is known', async () => (await condition())?.status === 'False')
    const failing = async (): Promise<boolean> =>
      /holdfast_directory_failing_since_timestamp_seconds\{.*\} [1-9]/.test((await agent.get('/metrics')).text)
    t.notOk(await failing(), 'it is kept as it is')
    renameSync(path, `${path}-away`)
    await until('a held directory that is gone counts as failing', failing)
    renameSync(`${path}-away`, path)
    agent.signal('SIGHUP')
    await until('it is back', async () => !(await failing()))
    writeFileSync(join(path, 'drifted'), '')
    t.match(await node.run('sync'), { code: 1, stdout: /is held since/ })
    t.ok(existsSync(join(path, 'drifted')), 'what has drifted is not repaired')

    t.match(await holdfast(['release', path]), { code: 0 })
    await until('the newer content is published', () => node.read('disk/web/password') === 'two')
    t.notOk(existsSync(join(path, 'drifted')))
    await until('and the condition follows', async () => (await condition())?.reason === 'Published')
    t.equal(await metric(), '0')
  },
)
