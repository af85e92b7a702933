/** Which configuration, which of its directories, and how much of the answer a command prints. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { executable } from '../project.js'
import { holdfast, Node, scratch } from './holdfast.js'

const node = new Node(t, [
  { path: 'disk/a', contents: [{ secret: 'a' }] },
  { path: 'disk/b', contents: [{ secret: 'b' }], history: 1 },
])
for (const name of ['a', 'b']) node.put('Secret', name, { key: name })
const [a, b] = [node.path('disk/a'), node.path('disk/b')]

await t.test('sync, verify, status and check take PATHs of the configuration', async (t) => {
  t.match(await node.run('sync', a, '-o', 'name'), { code: 0, stdout: `${a}\n` })
  t.equal(node.read('disk/b/key'), undefined, 'the other directory stays as it is')
  t.match(await node.run('sync', '--dry-run', b), { code: 0, stdout: /^would be created +\S+disk\/b / })
  t.match(await node.run('verify', a), { code: 0 })
  t.match(await node.run('verify', a, b, '-o=name'), { code: 4, stdout: `${a}\n${b}\n` })
  t.match(await node.run('status', b, '-o', 'name'), { code: 0, stdout: `${b}\n` })
  const checked = JSON.parse((await node.run('check', a, '-o=json')).stdout) as { checks: { subject: string }[] }
  t.ok(checked.checks.some(({ subject }) => subject === a))
  t.notOk(checked.checks.some(({ subject }) => subject === b))
  for (const command of ['sync', 'verify', 'status', 'check'])
    t.match(await node.run(command, '/nowhere'), {
      code: 2,
      stderr: new RegExp(`^error: /nowhere is not a directory of .*, which has ${a}, ${b}\n$`),
    })
})

await t.test('sync of one PATH lets no other directory go', async (t) => {
  t.match(await node.run('sync'), { code: 0 })
  t.match(await node.run('sync', a), { code: 0 })
  // What an agent or sync keeps, remove leaves; what has left the configuration, it would take.
  t.match(await node.run('status', b), { stdout: /True/ })
  const removed = await holdfast(['remove', b, '--state-directory', node.path('state')])
  t.match(removed, { code: 1, stderr: /an agent or "holdfast sync" publishes/ })
})

await t.test('a table goes without its first line, text goes with -q, and -v logs all', async (t) => {
  for (const command of [['verify'], ['status'], ['check'], ['history', b]]) {
    const config = command[0] === 'history' ? [] : ['--config', node.configuration]
    const whole = await holdfast([...command, ...config])
    const headless = await holdfast([...command, ...config, '--no-headers'])
    t.equal(headless.stdout.split('\n').length, whole.stdout.split('\n').length - 1, command.join(' '))
    t.notMatch(headless.stdout, /^[A-Z]+ +[A-Z]+/)
    t.match(await holdfast([...command, ...config, '-q']), { code: whole.code, stdout: '', stderr: '' })
  }
  t.match(JSON.parse((await node.run('verify', '-q', '-o', 'json')).stdout), {
    directories: [{ path: a }, { path: b }],
  })
  const told = await holdfast(['verify', '--config', '/nowhere.yaml', '-q'])
  t.match(told, { code: 2, stdout: '', stderr: /nowhere\.yaml/ }, 'an error stays')
  t.match((await holdfast(['-v', 'write', node.path('new'), '-'], { input: 'x' })).stdout, /^created/)
})

await t.test('flags before the command, with "=" and as kubectl types them, reach their command', async (t) => {
  const plain = await node.run('verify', '-o', 'json')
  t.same(await holdfast(['-o=json', `--config=${node.configuration}`, 'verify']), plain)
  t.same(await holdfast([`-c=${node.configuration}`, 'verify', '-o=json']), plain)
  t.match(await holdfast(['hold', a, '--for', '1d', '-o=json']), { code: 0, stdout: /"held": true/ })
  t.match(await holdfast(['release', a]), { code: 0 })
  t.match(await holdfast(['sync', '--dry-run=client']), { code: 2, stderr: /unknown option '--dry-run=client'/ })
})

await t.test('- is standard input: of write, of --from, and of --config', async (t) => {
  const file = node.path('file')
  t.match(await holdfast(['write', '-'], { input: 'x' }), { code: 2, stderr: /FILE is missing: .*\.\/-/ })
  t.match(await holdfast(['write', file, '-'], { input: 'one' }), { code: 0, stdout: /^created/ })
  t.match(await holdfast(['write', file, '--from', '-'], { input: 'two' }), { code: 0, stdout: /^replaced/ })
  t.equal(readFileSync(file, 'utf8'), 'two')
  t.match(await holdfast(['write', file, '-', '--from', 'x']), { code: 2, stderr: /- and --from exclude each other/ })
  t.match(await holdfast(['replace', a, '--from', '-']), {
    code: 2,
    stderr: /--from - is standard input, .*write FILE -/,
  })
  const input = readFileSync(node.configuration)
  t.match(await holdfast(['check', '--config', '-', '--offline'], { input }), {
    code: 0,
    stdout: /^standard input is a valid/,
  })
  const wrong = await holdfast(['check', '--config', '-', '--offline'], { input: 'kind: x\n' })
  t.match(wrong, { code: 2, stderr: /standard input:1:7: kind/ })
  for (const command of ['check', 'verify', 'status', 'rbac'])
    t.match((await holdfast([command, '--help'])).stdout, /the configuration file; -: standard\s+input/, command)
  for (const [command = '', ...more] of [['agent'], ['sync'], ['diff', a], ['adopt', a], ['reload']]) {
    t.notMatch((await holdfast([command, '--help'])).stdout, /-: standard\s+input/, command)
    const refused = await holdfast([command, ...more, '--config', '-'], { input })
    t.match(refused, { code: 2, stderr: /more than once: name a file/ }, command)
  }
})

await t.test(
  'check --offline judges a configuration on any machine, and names the place of each mistake',
  async (t) => {
    const root = scratch(t)
    const file = join(root, 'holdfast.yaml')
    const head =
      'apiVersion: holdfast.dev/v1alpha1\nkind: AgentConfiguration\nsource: { kubernetes: { kubeconfig: /nowhere } }\n'
    const offline = (...args: string[]) => holdfast(['check', '--config', file, '--offline', ...args])
    writeFileSync(file, `${head}directories:\n- { path: /nowhere/a, contents: [{ secret: a }] }\n`)
    t.strictSame(await offline(), {
      code: 0,
      signal: null,
      stdout: `${file} is a valid configuration of 1 directory\n`,
      stderr: '',
    })
    t.match(JSON.parse((await offline('-o', 'json')).stdout), {
      file,
      valid: true,
      directories: [{ path: '/nowhere/a' }],
    })
    t.match(await offline('/nowhere/b'), { code: 2, stderr: /\/nowhere\/b is not a directory of/ })
    t.match(await offline('--consumers'), { code: 2, stderr: /--offline' cannot be used with option '--consumers'/ })
    writeFileSync(file, `${head}stateDirectroy: /x\ndirectories:\n- { path: /nowhere/a, contents: [] }\n`)
    const { code, stderr, stdout } = await offline('-o', 'json')
    t.equal(code, 2)
    t.match(stderr, /holdfast\.yaml:4:1: stateDirectroy: [\s\S]*holdfast\.yaml:6:33: directories\[0\]\.contents: /)
    t.match(JSON.parse(stdout), {
      error: {
        problems: [
          { line: 4, column: 1 },
          { line: 6, column: 33 },
        ],
      },
    })
  },
)

const mayMount = process.getuid?.() === 0

await t.test(
  'without --config, the usual file counts; a faulty one of HOLDFAST_CONFIG does not hide what an agent has left',
  { skip: !mayMount && 'needs root to mount' },
  async (t) => {
    const state = { stateDirectory: node.path('lib/holdfast') }
    mkdirSync(state.stateDirectory, { recursive: true })
    mkdirSync(node.path('etc/holdfast'), { recursive: true })
    const directories = [{ path: a, contents: [{ secret: 'a' }] }]
    node.configure(directories, state)
    const agent = node.agent()
    await agent.address()
    t.equal(await agent.end('SIGTERM'), 0)
    copyFileSync(node.configuration, node.path('etc/holdfast/holdfast.yaml'))
    writeFileSync(node.path('faulty.yaml'), 'kind: x\n')
    const inPlace = (...line: string[]) => {
      const mounts = `mount --bind ${node.path('etc')} /etc && mount --bind ${node.path('lib')} /var/lib`
      const args = ['-m', 'sh', '-c', `${mounts} && exec "$@"`, 'sh', 'env', '-i', ...line]
      return spawnSync('unshare', args, { encoding: 'utf8' })
    }
    const run = [process.execPath, executable]
    t.match(inPlace(...run, 'verify', '-o', 'name'), { status: 0, stdout: `${a}\n` })
    const faulty = `HOLDFAST_CONFIG=${node.path('faulty.yaml')}`
    t.match(inPlace(faulty, ...run, 'verify'), { status: 2, stderr: /faulty\.yaml:1:7/ }, 'the variable wins')
    t.match(inPlace(faulty, ...run, 'status', '-o', 'name'), { status: 0, stdout: `${a}\n` })
    const named = inPlace(...run, 'status', '--config', node.path('faulty.yaml'))
    t.match(named, { status: 2, stderr: /faulty\.yaml:1:7/ })
  },
)
