/*
 * What a reader and a user carry: printed by `npm run lint`, which fails where a figure is above its bound. The bounds only fall.
 *
 *   loaded   files and lines (of the sources) that a whole run of a command or a call loads, late imports and threads included, as V8
 *            counts them for coverage
 *   shapes   leaf options of a publication at any depth, fields of a record, fields of the agent's state of a directory
 *   twice    names of types, and of functions, that the tree declares more than once
 *   warm     system calls (but those of Node's own threads and memory) of a publication of one changed file in a warm process, and the
 *            turns of the event loop: the fewest of twenty publications each, since a busy machine only adds to them; not counted where
 *            strace is missing
 *   start    processor time of `replace` beside that of a bare node, which is 1
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { compile } from './compile.mjs'

const project = join(import.meta.dirname, '..')
const holdfast = join(project, 'bin/holdfast.js')
const scratch = mkdtempSync(join(tmpdir(), 'holdfast-figures-'))
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }))

/** What each figure may be, at most. */
const bounds = JSON.parse(readFileSync(join(import.meta.dirname, 'figures.json'), 'utf8'))
/** Figures of a machine that does nothing else: caches and threads that others use make them worse. */
const ofQuiet = ['warm turns', 'start']
const [load] = loadavg()
/** What a figure that depends on the machine may vary by. */
const margin = { 'warm calls': 1.05, 'warm turns': 1.25, start: 1.25 }

// ---- shapes and names, from the sources

const sources = ['src', 'native', 'torture'].flatMap((room) =>
  readdirSync(join(project, room), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => {
      const file = join(room, name)
      return ts.createSourceFile(file, readFileSync(join(project, file), 'utf8'), ts.ScriptTarget.Latest, true)
    }),
)

/** Calls `see` with each node of the tree. */
function walk(node, see) {
  see(node)
  ts.forEachChild(node, (child) => walk(child, see))
}

const types = new Map()
const functions = new Map()
const add = (map, name, node) => map.set(name, [...(map.get(name) ?? []), node])
for (const source of sources)
  walk(source, (node) => {
    const isType = ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) || ts.isClassDeclaration(node)
    if (isType && node.name) add(types, node.name.text, node)
    // An overload is no second function.
    if (ts.isFunctionDeclaration(node) && node.name && node.body) add(functions, node.name.text, node)
    const value = ts.isVariableDeclaration(node) && node.initializer
    if (
      value &&
      (ts.isArrowFunction(value) || ts.isFunctionExpression(value)) &&
      ts.isSourceFile(node.parent.parent.parent)
    )
      add(functions, node.name.text, node)
  })
const twice = (map) =>
  [...map]
    .filter(([, nodes]) => nodes.length > 1)
    .map(([name, nodes]) => `${name}: ${nodes.map((node) => node.getSourceFile().fileName).join(' ')}`)

/** How many fields without fields of their own a type has: named types of the tree are looked into. */
function leaves(node, within = new Set()) {
  if (node === undefined) return 1
  if (ts.isInterfaceDeclaration(node)) {
    const inherited = (node.heritageClauses ?? []).flatMap((clause) => [...clause.types])
    return sum([...node.members, ...inherited].map((one) => leaves(one, within)))
  }
  if (ts.isTypeAliasDeclaration(node) || ts.isPropertySignature(node)) return leaves(node.type, within)
  if (ts.isTypeLiteralNode(node)) return sum(node.members.map((one) => leaves(one, within)))
  if (ts.isIntersectionTypeNode(node)) return sum(node.types.map((one) => leaves(one, within)))
  const name = ts.isTypeReferenceNode(node)
    ? node.typeName
    : ts.isExpressionWithTypeArguments(node)
      ? node.expression
      : undefined
  const [named] = (name && types.get(name.getText())) ?? []
  if (
    named === undefined ||
    within.has(named) ||
    !(ts.isInterfaceDeclaration(named) || ts.isTypeAliasDeclaration(named))
  )
    return 1
  return leaves(named, new Set([...within, named]))
}
const sum = (numbers) => numbers.reduce((total, one) => total + one, 0)
const only = (map, name) => map.get(name)[0]

function recordFields() {
  let count = 0
  for (const source of sources)
    walk(source, (node) => {
      if (!ts.isVariableDeclaration(node) || node.name.getText() !== 'knownFields') return
      walk(node, (one) => (count += ts.isPropertyAssignment(one) && one.parent.parent.parent === node ? 1 : 0))
    })
  return count
}

/** What a record says is one value, and the core's. */
const stateFields = () => sum(['DirectoryFacts', 'PassFacts'].map((name) => only(types, name).members.length)) - 1

// ---- what a run loads

/** Runs a program with V8's coverage, and counts the files of the tree that it loaded. */
async function loadedBy(name, run) {
  const directory = join(scratch, `coverage-${name}`)
  await run({ ...process.env, NODE_V8_COVERAGE: directory, HOLDFAST_LOG_LEVEL: 'error' })
  const dist = join(project, 'dist/')
  const files = new Set()
  for (const file of readdirSync(directory))
    for (const { url } of JSON.parse(readFileSync(join(directory, file), 'utf8')).result) {
      if (!url.startsWith('file:')) continue
      const path = fileURLToPath(url)
      if (!path.startsWith(dist)) continue
      const source = join(project, relative(dist, path).replace(/\.js$/, '.ts'))
      if (existsSync(source)) files.add(source)
    }
  const lines = sum([...files].map((file) => readFileSync(file, 'utf8').split('\n').length - 1))
  if (process.argv.includes('--list'))
    for (const file of [...files].toSorted()) console.log(`  ${name}: ${relative(project, file)}`)
  return { files: files.size, lines }
}

function command(args, env) {
  const { status, stderr } = spawnSync(process.execPath, [holdfast, ...args], { env, encoding: 'utf8' })
  if (status !== 0) throw new Error(`holdfast ${args.join(' ')} ended with ${String(status)}: ${stderr}`)
}

const from = join(scratch, 'from')
const target = join(scratch, 'target')
mkdirSync(from)

/** A second publication, over a record, with an access list and earlier content. */
async function replaceWhole(env) {
  writeFileSync(join(from, 'a'), 'one')
  command(['replace', target, '--from', from], process.env)
  spawnSync('setfacl', ['-m', 'u:65534:rx', target])
  writeFileSync(join(from, 'a'), 'two')
  command(['replace', target, '--from', from, '--keep-attributes'], env)
}

async function installWhole(env) {
  const manifest = join(scratch, 'pod.yaml')
  writeFileSync(
    manifest,
    'apiVersion: v1\nkind: Pod\nmetadata: { name: web }\nspec: { containers: [{ name: web, image: "example/web:1" }] }\n',
  )
  command(['install', manifest, '--pod-manifest-dir', join(scratch, 'manifests')], env)
}

async function libraryCall(env) {
  const program = `
    import { replaceDirectory } from ${JSON.stringify(join(project, 'dist/src/index.js'))}
    await replaceDirectory(${JSON.stringify(join(scratch, 'library'))}, { files: { a: 'one' } })
    await replaceDirectory(${JSON.stringify(join(scratch, 'library'))}, { files: { a: 'two' } })`
  execFileSync(process.execPath, ['--input-type=module', '-e', program], { env })
}

/** An API server of one Secret: its watch tells it, and that this was all. */
function secretServer() {
  const event = (type, metadata, more) =>
    `${JSON.stringify({ type, object: { apiVersion: 'v1', kind: 'Secret', metadata, ...more } })}\n`
  const object = { name: 's', namespace: 'n', uid: 'u', resourceVersion: '1' }
  return createServer((request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write(event('ADDED', object, { data: { a: 'b25l' } }))
    response.write(event('BOOKMARK', { resourceVersion: '1', annotations: { 'k8s.io/initial-events-end': 'true' } }))
  }).listen(0, '127.0.0.1')
}

async function agentOfOneSecret(env) {
  const server = secretServer()
  await once(server, 'listening')
  const kubeconfig = join(scratch, 'kubeconfig')
  writeFileSync(
    kubeconfig,
    `{ apiVersion: v1, kind: Config, current-context: c, contexts: [{ name: c, context: { cluster: c, user: u } }],
       users: [{ name: u, user: { token: t } }],
       clusters: [{ name: c, cluster: { server: "http://127.0.0.1:${String(server.address().port)}" } }] }`,
    { mode: 0o600 },
  )
  const configuration = join(scratch, 'holdfast.yaml')
  writeFileSync(
    configuration,
    `{ apiVersion: holdfast.dev/v1alpha1, kind: AgentConfiguration, stateDirectory: ${join(scratch, 'state')},
       server: { address: "127.0.0.1:0" }, source: { namespace: n, kubernetes: { kubeconfig: ${kubeconfig} } },
       directories: [{ path: ${join(scratch, 'agent')}, contents: [{ secret: s }] }] }`,
  )
  const options = { env: { ...env, HOLDFAST_LOG_LEVEL: 'info' }, stdio: ['ignore', 'ignore', 'pipe'] }
  const agent = spawn(process.execPath, [holdfast, 'agent', '--config', configuration, '--log-format', 'json'], options)
  let log = ''
  for await (const chunk of agent.stderr) {
    log += chunk
    if (log.includes('"Published"') && !agent.killed) agent.kill('SIGTERM')
  }
  server.closeAllConnections()
  server.close()
  if (!agent.killed) throw new Error(`the agent ended: ${log}`)
}

// ---- a warm publication

const warm = `
  import { accessSync } from 'node:fs'
  import { performance } from 'node:perf_hooks'
  const { replaceDirectory } = await import(process.argv[1])
  const publish = (text) => replaceDirectory(process.argv[2], { files: { a: text } })
  for (let turn = 0; turn < 5; turn++) await publish('warm ' + turn)
  const mark = () => { try { accessSync('/holdfast-figures') } catch {} }
  const turns = () => performance.nodeTiming.uvMetricsInfo?.loopCount
  let least = Infinity
  for (let turn = 0; turn < 20; turn++) {
    const before = turns()
    mark()
    await publish('counted ' + turn)
    mark()
    least = Math.min(least, turns() - before)
  }
  console.log(least)`

/** What Node calls as its threads and its memory need it, more often on a busy machine: 30 of 170. The numbers of eventfd(2) have eight bytes. */
const nodesOwn =
  /^\d+ +(futex|epoll_\w+|mmap|munmap|mprotect|madvise|brk)\(|^\d+ +(read|write)\(\d+, +("(\\[0-7]){8}"|<unf)/

/** undefined: strace is not there, or may not trace. */
function warmPublication() {
  const trace = join(scratch, 'trace')
  const program = [
    process.execPath,
    '--input-type=module',
    '-e',
    warm,
    join(project, 'dist/src/index.js'),
    join(scratch, 'warm'),
  ]
  const { status, stdout } = spawnSync('strace', ['-f', '-qq', '-o', trace, ...program], { encoding: 'utf8' })
  if (status !== 0) return undefined
  // What is between two marks is in turn a publication and what the loop does behind it.
  const [calls] = readFileSync(trace, 'utf8')
    .split(/^.*"\/holdfast-figures".*\n/m)
    .filter((_, index) => index % 2 === 1)
    .map((published) => published.split('\n').filter((line) => /^\d+ +[a-z]\w*\(/.test(line) && !nodesOwn.test(line)))
    .sort((a, b) => a.length - b.length)
  if (process.argv.includes('--list')) for (const line of calls) console.log(`  ${line}`)
  return { calls: calls.length, turns: Number(stdout) }
}

/** Processor time of five runs of each, by the shell's own account of its children: the least of five turns, since other programs only add to it. */
function startRatio() {
  const seconds = (script) => {
    const said = execFileSync('bash', ['-c', `for i in 1 2 3 4 5; do ${script}; done >/dev/null 2>&1; times`], {
      encoding: 'utf8',
    })
    const [, children] = said.trim().split('\n')
    return sum(
      [...children.matchAll(/(\d+)m([\d.]+)s/g)].map(([, minutes, rest]) => Number(minutes) * 60 + Number(rest)),
    )
  }
  const program = join(project, 'dist/program/bin/holdfast.js')
  const replace = `${process.execPath} ${program} replace ${target} --from ${from}`
  const least = (script) => Math.min(...[1, 2, 3, 4, 5].map(() => seconds(script)))
  return Math.round((least(`echo $i$RANDOM > ${from}/a; ${replace}`) / least(`${process.execPath} -e 0`)) * 100) / 100
}

await compile()
const figures = {}
const count = (name, value) => (figures[name] = value)
for (const [name, run] of Object.entries({
  replace: replaceWhole,
  install: installWhole,
  library: libraryCall,
  agent: agentOfOneSecret,
})) {
  const { files, lines } = await loadedBy(name, run)
  count(`${name} files`, files)
  count(`${name} lines`, lines)
}
count('publication options', leaves(only(types, 'PublicationOptions')))
count('record fields', recordFields())
count('directory state fields', stateFields())
for (const [name, map] of Object.entries({ 'type names': types, 'function names': functions })) {
  count(`${name} twice`, twice(map).length)
  if (process.argv.includes('--list')) for (const one of twice(map)) console.log(`  ${name} twice: ${one}`)
}
const published = warmPublication()
if (published === undefined) console.log('warm calls and turns: not counted, since strace cannot trace here')
else {
  count('warm calls', published.calls)
  count('warm turns', published.turns)
}
count('start', startRatio())

for (const [name, value] of Object.entries(figures)) {
  const bound = bounds[name] * (margin[name] ?? 1)
  console.log(`${name.padEnd(24)} ${String(value).padStart(7)} of ${String(bounds[name])}`)
  if (value <= bound) continue
  if (ofQuiet.includes(name) && load > availableParallelism()) {
    console.log(`${name} is not judged: the machine is busy (load ${load.toFixed(1)})`)
    continue
  }
  console.error(
    `${name} is ${String(value)}, and may be ${String(bounds[name])} at most: scripts/figures.mjs says what it counts`,
  )
  process.exitCode = 1
}
if (process.argv.includes('--list'))
  console.log('types:', twice(types).join(' '), '\nfunctions:', twice(functions).join(' '))
