/*
 * The installed package, its program and its library, on the Node that runs this: what the type checker and the unit tests, which run
 * on one version and on the sources, cannot see. A copy of this file stands in a project that holdfast is installed in.
 * Usage: node smoke.mjs DIRECTORY EXECUTABLE; the directory must not exist, and the executable is the single one that this Node made.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import { DurableWriteError, replaceDirectories, replaceDirectory, replaceFile } from 'holdfast'

const [, , directory, executable] = process.argv
const manifest = createRequire(import.meta.url).resolve('holdfast/package.json')
const program = join(dirname(manifest), 'bin/holdfast.js')
mkdirSync(directory, { recursive: true })

const refused =
  "await (await import('holdfast')).replaceDirectory('/nowhere', { files: {}, mode: 755 }).catch(console.log)"
const stack = execFileSync(process.execPath, ['--enable-source-maps', '--input-type=module', '-e', refused], {
  encoding: 'utf8',
})
assert.match(stack, /RangeError[^]*src\/library\/public-fields\.ts:[1-9][0-9]*:/, 'the maps lead to the sources')

const target = join(directory, 'library')
assert.equal((await replaceDirectory(target, { files: { a: '1', 'b/c': '2' } })).outcome, 'created')
assert.equal((await replaceDirectory(target, { files: { a: '1', 'b/c': '2' } })).outcome, 'unchanged')
assert.equal((await replaceDirectory(target, { files: { a: '2' } })).outcome, 'replaced')
const many = Array.from({ length: 20 }, (_, index) => ({
  target: join(directory, `many-${index}`),
  files: { a: 'x' },
}))
assert.ok((await replaceDirectories(many)).every((result) => result.outcome === 'created'))
assert.equal((await replaceFile(join(directory, 'file'), 'content')).outcome, 'created')
await assert.rejects(replaceDirectory(join(directory, 'file'), { files: {} }), DurableWriteError)

const inThread = `import(${JSON.stringify(import.meta.resolve('holdfast'))}).then(({ replaceDirectory }) =>
  replaceDirectory(${JSON.stringify(join(directory, 'thread'))}, { files: { a: '1' } }))`
const thread = new Worker(inThread, { eval: true, stderr: true })
thread.stderr.on('data', (said) => assert.fail(`a thread says: ${said}`))
assert.deepEqual(await once(thread, 'exit'), [0])
assert.equal(readFileSync(join(directory, 'thread', 'a'), 'utf8'), '1')

const run = (...args) => execFileSync(process.execPath, [program, ...args], { encoding: 'utf8' })
const result = JSON.parse(run('replace', join(directory, 'command'), '--from', target, '--output', 'json'))
assert.equal(result.outcome, 'created')
assert.equal(readFileSync(join(directory, 'command', 'a'), 'utf8'), '2')

const objects = join(directory, 'objects')
mkdirSync(objects)
const secret = (value) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, stringData: { key: value } })
writeFileSync(join(objects, 's.json'), secret('first'))
writeFileSync(
  join(directory, 'holdfast.yaml'),
  `apiVersion: holdfast.dev/v1alpha1
kind: AgentConfiguration
stateDirectory: ./state
source: { namespace: default, files: { path: ./objects } }
directories:
  - path: ./published
    contents: [{ secret: s }]
`,
)
run('sync', '--config', join(directory, 'holdfast.yaml'))
assert.equal(readFileSync(join(directory, 'published', 'key'), 'utf8'), 'first')
const agent = spawn(process.execPath, [program, 'agent', '--config', join(directory, 'holdfast.yaml')], {
  stdio: ['ignore', 'ignore', 'pipe'],
})
let log = ''
agent.stderr.setEncoding('utf8').on('data', (text) => (log += text))
const changed = new Promise((resolve, reject) => {
  const look = () => readFileSync(join(directory, 'published', 'key'), 'utf8') === 'second' && resolve()
  watch(directory, look)
  agent.once('exit', () => reject(new Error(`the agent ended early: ${log}`)))
  setTimeout(() => reject(new Error(`the agent did not publish the update: ${log}`)), 20_000).unref()
})
writeFileSync(join(objects, 's.json'), secret('second'))
await changed
agent.removeAllListeners('exit')
agent.kill('SIGTERM')
assert.deepEqual(await once(agent, 'exit'), [0, null], log)
run('verify', '--config', join(directory, 'holdfast.yaml'))

// The library leaves the signals of its program alone; the program keeps Node's inspector shut, in each of its forms.
assert.deepEqual(
  process.eventNames().filter((name) => String(name).startsWith('SIG')),
  [],
)
const flag = '--disable-sigusr1'
const forms = [
  [process.execPath, program],
  ...(process.allowedNodeEnvironmentFlags.has(flag) ? [[process.execPath, flag, program]] : []),
  [executable],
]
for (const form of forms) {
  const words = ['0', 'keeps 1 directory', ...form, 'agent', '--config', join(directory, 'holdfast.yaml')]
  const seen = JSON.parse(execFileSync(process.execPath, [join(import.meta.dirname, 'sigusr1.mjs'), ...words]))
  assert.deepEqual([seen.ports, seen.code, seen.signal], [[], null, null], `${form.join(' ')}: ${seen.output}`)
  assert.ok(seen.signals > 0)
}
rmSync(directory, { recursive: true })
console.log(`node ${process.version}: works`)
process.exit(0)
