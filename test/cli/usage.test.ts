import { closeSync, existsSync, mkdirSync, openSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { commands } from '../../src/cli/program.js'
import { begin, ended, holdfast, scratch } from './holdfast.js'
import { executable, project } from '../project.js'

const root = scratch(t)
const at = (name: string) => join(root, name)
const good = at('good')
const target = at('target')
mkdirSync(join(good, 'sub'), { recursive: true })
writeFileSync(join(good, 'sub', 'file'), 'content')
mkdirSync(at('empty'))
mkdirSync(join(at('half-empty'), 'hollow'), { recursive: true })
writeFileSync(join(at('half-empty'), 'file'), '')
mkdirSync(at('linked'))
symlinkSync('/etc/hostname', join(at('linked'), 'link'))
symlinkSync(good, at('link'))
mkdirSync(at('piped'))
execFileSync('mkfifo', [join(at('piped'), 'pipe')])
writeFileSync(at('file'), '')
mkdirSync(at('bytes'))
writeFileSync(Buffer.concat([Buffer.from(`${at('bytes')}/`), Buffer.of(0xff, 0xfe)]), '')
writeFileSync(at('broken.yaml'), 'apiVersion: holdfast.dev/v1alpha1\nkind: AgentConfiguration\nstateDirectroy: /x\n')

const replace = (...args: string[]) => ['replace', target, '--from', good, ...args]
const monitor = (...args: string[]) => {
  const places = [`--resource-dir=${root}`, `--manifests-dir=${root}`]
  return ['monitor', '--revision=1', '--target-name=x', ...places, ...args]
}

/** Arguments, and what the message must say. All end with exit code 2, and touch nothing. */
const broken: [string, string[], RegExp][] = [
  ['an unknown command', ['relpace', target], /unknown command 'relpace'[\s\S]*Did you mean replace\?/],
  ['help of an unknown command', ['help', 'relpace'], /unknown command 'relpace'[\s\S]*Did you mean replace\?/],
  [
    'a target in --from',
    ['replace', join(good, 'new', 'x'), '--from', good],
    /is inside --from .*good: name a target outside/,
  ],
  ['a target in --from, by a link', ['replace', join(at('link'), 'x'), '--from', good], /link\/x is inside --from/],
  ['.. behind a link', ['replace', `${at('link')}/../x`, '--from', good], /link\/\.\./],
  ['.. behind a link, of write', ['write', `${at('link')}/../x`], /link\/\.\./],
  ['an unknown flag', replace('--file-mod', '0600'), /unknown option '--file-mod'[\s\S]*Did you mean --file-mode\?/],
  ['an unknown flag of agent', ['agent', '--conf', 'x'], /unknown option '--conf'[\s\S]*--config/],
  ['no target', ['replace', '--from', good], /missing required argument 'target'/],
  ['two targets', ['replace', target, target, '--from', good], /too many arguments/],
  ['no --from', ['replace', target], /--from DIR is missing: name the directory that holds the new content/],
  ['--from without a value', ['replace', target, '--from'], /'--from <dir>' argument missing/],
  ['an empty --from', ['replace', target, '--from', ''], /--from is empty/],
  ['--from does not exist', ['replace', target, '--from', at('nowhere')], /nowhere: ENOENT/],
  ['--from is a file', ['replace', target, '--from', at('file')], /file is not a directory/],
  ['--from is a link', ['replace', target, '--from', at('link')], /is a symbolic link/],
  ['--from holds a link', ['replace', target, '--from', at('linked')], /linked\/link is a symbolic link/],
  ['--from holds a pipe', ['replace', target, '--from', at('piped')], /piped\/pipe is a pipe/],
  ['--from is empty', ['replace', target, '--from', at('empty')], /empty is empty/],
  ['--from holds an empty directory', ['replace', target, '--from', at('half-empty')], /hollow is empty/],
  ['a name that is not UTF-8', ['replace', target, '--from', at('bytes')], /not UTF-8/],
  ['a mode with a digit 8', replace('--mode', '0785'), /'0785' is invalid[\s\S]*octal/],
  ['a directory of a file’s mode', replace('--mode', '0644'), /needs x where it has r, as in 0755; .* --file-mode/],
  ['a mode of letters', replace('--mode', 'u=rw'), /octal mode/],
  ['a mode that is too long', replace('--file-mode', '00600'), /octal mode/],
  ['a mode in JavaScript', replace('--file-mode', '0o600'), /octal mode/],
  ['a negative mode', replace('--mode=-1'), /octal mode/],
  ['a set-user-ID directory', replace('--mode', '4755'), /bits that are not allowed here; use at most 3777/],
  ['a set-group-ID file', replace('--file-mode', '2755'), /bits that are not allowed here; use at most 0777/],
  ['write of a sticky file', ['write', target, '--mode', '1644'], /not allowed here; use at most 0777/],
  ['owner by name', replace('--owner', 'root:root'), /two numbers, user and group/],
  ['owner without a group', replace('--owner', '0'), /two numbers/],
  ['an owner that is nobody', replace('--owner', '4294967295:0'), /two numbers/],
  ['a duration without a unit', replace('--lock-timeout', '5'), /'5' is invalid[\s\S]*duration with units/],
  ['a negative duration', replace('--lock-timeout=-5s'), /duration with units/],
  ['an output that nobody knows', replace('-o', 'xml'), /Allowed choices are text, wide, json, yaml/],
  ['a log level that nobody knows', replace('--log-level', 'loud'), /Allowed choices are debug, info, warn/],
  ['the root as a target', ['replace', '/', '--from', good], /must end in a name|root directory/],
  ['a target that ends in ..', ['replace', `${target}/..`, '--from', good], /must end in a name/],
  ['an empty target', ['replace', '', '--from', good], /the path is empty/],
  ['write without a file', ['write'], /missing required argument 'file'/],
  ['write to a target that ends in .', ['write', `${target}/.`], /must end in a name/],
  ['write with a bad mode', ['write', target, '--mode', 'x'], /octal mode/],
  ['agent without a configuration', ['agent'], /--config FILE is missing/],
  ['agent with a file that is not there', ['agent', '--config', at('none.yaml')], /none\.yaml/],
  ['agent with an unknown field', ['agent', '--config', at('broken.yaml')], /stateDirectroy[\s\S]*stateDirectory/],
  ['a port that is none', ['agent', '--config', 'x', '--listen', 'localhost'], /ADDRESS:PORT/],
  ['a port that is too high', ['agent', '--config', 'x', '--listen', '127.0.0.1:65536'], /ADDRESS:PORT/],
  ['sync without a configuration', ['sync'], /--config FILE is missing/],
  ['sync with a bad time', ['sync', '--config', 'x', '--timeout', 'soon'], /duration with units/],
  ['verify without a configuration', ['verify'], /--config FILE is missing/],
  ['check without a configuration', ['check'], /--config FILE is missing/],
  ['verify with a directory', ['verify', '--config', root], /regular file/],
  ['install without anything', ['install'], /--revision, --namespace, .* are missing; to install from files, name/],
  ['install with an unknown flag', ['install', '--revison=6'], /'--revison=6'[\s\S]*Did you mean --revision/],
  ['install with a revision by hash', ['install', '--revision=3f2'], /whole number from 0 to 2147483647/],
  ['install with a name that climbs out', ['install', '--pod=../x'], /name that Kubernetes allows/],
  [
    'prune without a limit',
    ['prune', '--resource-dir', root, '--static-pod-name=x'],
    /--max-eligible-revision or --keep/,
  ],
  ['monitor without a probe', monitor(), /--ready-url, --ready-exec, --kubelet-url or --kubeconfig/],
  ['monitor with credentials in a URL', monitor('--ready-url=https://a:b@c/'), /http or https URL without credentials/],
  ['rbac install with nothing', ['rbac', 'install'], /--revision, --namespace, --pod, --configmaps are missing/],
  ['an unknown subcommand', ['rbac', 'instal'], /too many arguments for 'rbac'[\s\S]*holdfast rbac --help explains it/],
  ['status with a bad configuration', ['status', '--config', at('broken.yaml')], /stateDirectroy/],
]

await t.test('wrong usage exits with 2, names the mistake, and changes nothing', { jobs: 2 }, async (t) => {
  t.ok(broken.length >= 40)
  for (let first = 0; first < broken.length; first += 2) {
    await Promise.all(
      broken.slice(first, first + 2).map(async ([what, args, message]) => {
        const { code, stdout, stderr } = await holdfast(args, { input: 'x' })
        t.equal(code, 2, `${what}: ${stderr}`)
        t.match(stderr, message, what)
        t.equal(stdout, '', `${what}: nothing on standard output`)
      }),
    )
  }
  t.notOk(existsSync(target))
})

await t.test('help explains every command, with examples, and lists none that does not work yet', async (t) => {
  const { code, stdout } = await holdfast(['--help'])
  t.equal(code, 0)
  t.ok(Object.keys(commands).length >= 12)
  for (const command of Object.keys(commands)) {
    t.match(stdout, new RegExp(`^  ${command} `, 'm'))
    const help = await holdfast([command, '--help'])
    t.equal(help.code, 0)
    t.match(help.stdout, /Examples:\n {2}/, command)
    t.match(help.stdout, /Exit codes: 0 /, command)
  }
  const rbac = await holdfast(['rbac', 'install', '--help'])
  t.match(rbac, { code: 0, stdout: /^Usage: holdfast rbac install/ })
  t.equal((await holdfast(['help', 'rbac', 'install'])).stdout, rbac.stdout)
  t.match(rbac.stdout, /Examples:\n {2}/)
  t.match(stdout, /static pods/)
  t.match((await holdfast(['check', '--help'])).stdout, /Beside each target, holdfast creates two empty directories/)
  t.match((await holdfast(['--version'])).stdout, /^\d+\.\d+\.\d+\n$/)
})

await t.test('holdfast without a command shows the help, and exits with 0', async (t) => {
  const alone = await holdfast([])
  t.match(alone, { code: 0, stdout: /^Usage: holdfast/, stderr: '' })
  t.equal(alone.stdout, (await holdfast(['--help'])).stdout)
})

await t.test('an error is a line of JSON or of text, by --log-format', async (t) => {
  const missing = (format: string) => holdfast(['replace', target, '--log-format', format])
  t.match(JSON.parse((await missing('json')).stderr), { level: 'error', msg: /--from DIR is missing/ })
  for (const format of ['auto', 'text']) t.match((await missing(format)).stderr, /^error: --from DIR is missing/)
  const failed = (format: string) => holdfast(['write', target, '--log-format', format], { input: '' })
  for (const format of ['auto', 'json'])
    t.match(JSON.parse((await failed(format)).stderr), { level: 'error', path: target })
  t.match((await failed('text')).stderr, /^\d\d:\d\d:\d\d ERROR the content is empty/)
  t.match(await holdfast(['write', target, '--log-format', 'xml']), { code: 2, stderr: /choices are auto, json, text/ })
  const variable = await holdfast(['write', target], { input: '', env: { HOLDFAST_LOG_FORMAT: 'text' } })
  t.match(variable.stderr, /ERROR the content is empty/)
})

await t.test('wrong usage is one JSON document with -o json', async (t) => {
  const cases: [string[], object][] = [
    [['replace', target, '--from', at('nowhere'), '-o', 'json'], { error: { message: /nowhere: ENOENT/ } }],
    [['replace', target, '--form', 'x', '--output=json'], { error: { message: /^unknown option '--form'/ } }],
    [
      ['verify', '--config', at('broken.yaml'), '-o', 'json'],
      {
        error: {
          reason: 'ConfigurationInvalid',
          message: /stateDirectroy/,
          problems: [{ line: 1 }, { line: 1 }, { line: 3, column: 1, place: 'stateDirectroy' }],
        },
      },
    ],
  ]
  for (const [args, document] of cases) {
    const { code, stdout } = await holdfast(args)
    t.equal(code, 2)
    t.match(JSON.parse(stdout), document)
  }
})

await t.test('each problem of a configuration is a line of the log, with its place', async (t) => {
  const { stderr } = await holdfast(['verify', '--config', at('broken.yaml'), '--log-format=json'])
  const lines = stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as object)
  t.equal(lines.length, 3)
  t.match(lines[2], { level: 'error', reason: 'ConfigurationInvalid', line: 3, place: 'stateDirectroy' })
})

await t.test('the log works where the process can open no more files', async (t) => {
  const built = (name: string) => JSON.stringify(join(project, 'dist/src/cli/output', name))
  const script = `
    const { createLogger } = await import(${built('logger.js')})
    const { processIo } = await import(${built('io.js')})
    const { openSync } = await import('node:fs')
    try { for (;;) openSync('/dev/null') } catch (error) { if (error.code !== 'EMFILE') throw error }
    const log = createLogger(processIo, { logLevel: 'info', logFormat: 'auto' }, { node: 'n' })
    log.debug({}, 'not shown')
    log.error({ code: 'EMFILE', inode: 2n ** 60n }, 'logged')`
  const limited = ['-c', 'ulimit -n 64; exec "$0" "$@"', process.execPath]
  const run = spawnSync('/bin/sh', [...limited, '--input-type=module', '-e', script])
  t.equal(run.status, 0, run.stderr.toString())
  // The text of the test's own loader comes after that.
  const [line = ''] = run.stderr.toString().split('\n')
  t.match(JSON.parse(line), { level: 'error', node: 'n', code: 'EMFILE', inode: '1152921504606846976', msg: 'logged' })
})

await t.test('the agent reads its flags from the environment, too', async (t) => {
  const { code, stderr } = await holdfast(['agent'], { env: { HOLDFAST_CONFIG: at('broken.yaml') } })
  t.equal(code, 2)
  t.match(stderr, /stateDirectroy/)
  const listen = await holdfast(['agent', '--config', 'x'], { env: { HOLDFAST_LISTEN: 'nowhere' } })
  t.match(listen, { code: 2, stderr: /HOLDFAST_LISTEN[\s\S]*ADDRESS:PORT/ })
})

await t.test('the environment gives a flag without a value as true or false', async (t) => {
  const agent = (value: string) =>
    holdfast(['agent', '--config', at('broken.yaml')], { env: { HOLDFAST_REQUIRE_PROVEN: value } })
  for (const value of ['maybe', '2', 'tru']) {
    const { code, stderr } = await agent(value)
    t.equal(code, 2)
    t.match(stderr, `HOLDFAST_REQUIRE_PROVEN is "${value}": write true or false`)
  }
  for (const value of ['false', '0', 'No', 'true', '1', 'YES', '']) {
    const { code, stderr } = await agent(value)
    t.equal(code, 2)
    t.match(stderr, /stateDirectroy/, `${value} is understood`)
  }
})

await t.test('Ctrl-C while write reads its input ends it with 130, and writes nothing', async (t) => {
  const child = begin(['write', at('never')])
  const end = ended(child)
  // The handler is in place before the command reads its input; once more than a pipe's capacity has gone, it has read some.
  await new Promise((resolve) => child.stdin?.write(Buffer.alloc(8 * 1024 * 1024), resolve))
  child.kill('SIGINT')
  t.equal((await end).code, 130)
  t.notOk(existsSync(at('never')))
})

await t.test(
  'a one-shot command writes text wherever its standard error goes, and the daemons JSON lines',
  async (t) => {
    const file = join(scratch(t), 'file')
    t.match((await holdfast(['write', file], { input: '' })).stderr, /^\d\d:\d\d:\d\d ERROR .*empty/)
    const { stdout } = await holdfast(['--help'])
    t.match(
      stdout.replaceAll(/\s+/g, ' '),
      /auto: text on a terminal, JSON lines elsewhere .*default: "text", of agent and monitor "auto"/,
    )
    t.match(JSON.parse((await holdfast(['agent', '--config', '/nowhere.yaml'])).stderr), { level: 'error' })
  },
)

await t.test('a command whose standard output cannot be written says why on standard error', async (t) => {
  const root = scratch(t)
  const full = openSync('/dev/full', 'w')
  t.teardown(() => closeSync(full))
  for (const [output, reason] of [
    ['json', 'ENOSPC'],
    ['text', 'ENOSPC'],
  ] as const) {
    const args = [executable, 'write', join(root, 'file'), '-o', output]
    const { status, stderr } = spawnSync(process.execPath, args, {
      input: output,
      stdio: ['pipe', full, 'pipe'],
      encoding: 'utf8',
    })
    t.match({ status, stderr }, { status: 1, stderr: new RegExp(`could not write to standard output: ${reason}`) })
  }
  t.equal(readFileSync(join(root, 'file'), 'utf8'), 'text', 'and the work is done')
  const { stderr } = spawnSync(process.execPath, [executable, 'schema'], {
    stdio: ['ignore', full, 'pipe'],
    encoding: 'utf8',
  })
  t.notMatch(stderr, /done/, 'of a command that only prints, nothing is')
})

await t.test('the help of each command fits 80 columns, and lists every command under a heading', async (t) => {
  const ways = [[], ...Object.keys(commands).map((name) => [name]), ['rbac', 'install'], ['rbac', 'monitor']]
  for (const way of ways) {
    const { stdout } = await holdfast([...way, '--help'])
    t.strictSame(
      stdout.split('\n').filter((line) => line.length > 80),
      [],
      way.join(' '),
    )
  }
  t.notMatch((await holdfast(['--help'])).stdout, /^Commands:/m)
})

await t.test('holdfast names its own command for what users of kubectl type', async (t) => {
  t.match(await holdfast(['get']), { code: 2, stderr: /^error: unknown command 'get': holdfast calls it status/ })
  t.match(await holdfast(['delete', 'x', '-o', 'json']), { code: 2, stderr: /holdfast calls it remove/ })
})

await t.test('a mistake in a configuration names its probable cause', async (t) => {
  const head = 'apiVersion: holdfast.dev/v1alpha1\nkind: AgentConfiguration\n'
  const said = async (text: string) => {
    writeFileSync(at('mistaken.yaml'), head + text)
    return (await holdfast(['verify', '--config', at('mistaken.yaml')])).stderr
  }
  const template = /if this is a template \(\{\{ \}\}\), render the file first/
  t.match(await said('stateDirectory: {{ .Values.x }}\n'), template)
  t.match(await said('{{- if .Values.x }}\nstateDirectory: /x\n{{- end }}\n'), template)
  t.match(
    await said('directories:\n- path: /x\n  contents: [{ secret: a }]\n  validate: certificates\n'),
    /validate: must be a list, not a string: write it in brackets: \[ \]/,
  )
  const gone = 'mkdir "$1" && cd "$1" && rmdir "$1" && shift && exec "$@"'
  const args = ['-c', gone, 'sh', at('gone'), process.execPath, executable, 'verify', '--config', 'x.yaml']
  const { stderr } = spawnSync('/bin/sh', args, { encoding: 'utf8' })
  t.match(stderr, /x\.yaml: cannot be read \(ENOENT\): the working directory was removed: name an absolute path/)
})
