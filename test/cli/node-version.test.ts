/** What the program and its compiler need: an older Node, or a copy without packages, learns which and what to do. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { executable, project } from '../project.js'
import { scratch } from './holdfast.js'

/** Runs the program on this Node, which says that it is `version`, and lacks what came later. */
function on(t: Parameters<typeof scratch>[0], version: string) {
  const old = join(scratch(t), 'old.cjs')
  const says = `Object.defineProperty(process, 'version', { value: '${version}' })`
  writeFileSync(old, `${says}\ndelete require('node:crypto').hash\ndelete process.getBuiltinModule\n`)
  return spawnSync(process.execPath, ['--require', old, executable, 'replace', '/x', '--from', '/x'], {
    encoding: 'utf8',
  })
}

await t.test('the program names the Node that it needs on one that is too old', async (t) => {
  const { engines } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as { engines: { node: string } }
  for (const version of ['v12.22.12', 'v18.20.4', 'v20.18.3', 'v21.7.3', 'v22.2.0']) {
    const { status, stdout, stderr } = on(t, version)
    t.equal(
      stderr,
      `holdfast needs Node ${engines.node}, and this is Node ${version}: install a newer one (https://nodejs.org)\n`,
    )
    t.match({ status, stdout }, { status: 1, stdout: '' })
  }
})

await t.test('the program says what to raise, where it may open too few files to load itself', async (t) => {
  const words = [process.execPath, join(project, 'bin/holdfast.js'), '--version']
  const few = (limit: number) =>
    spawnSync('sh', ['-c', `ulimit -n ${limit}; exec "$@"`, 'sh', ...words], { encoding: 'utf8', env: {} })
  // Node itself opens some 18, and the program of separate files as many at once as it may.
  const { status, stderr } = few(22)
  t.match(stderr, /^holdfast cannot load its program: EMFILE: .*; raise the limit of open files \(ulimit -n\)\n$/)
  t.equal(status, 1)
})

await t.test('the compiler asks for npm ci where its packages are missing', async (t) => {
  const copy = scratch(t)
  for (const path of ['scripts', 'package.json']) cpSync(join(project, path), join(copy, path), { recursive: true })
  // No directory above the copy lends it packages.
  mkdirSync(join(copy, 'node_modules/esbuild'), { recursive: true })
  const { status, stderr } = spawnSync(process.execPath, [join(copy, 'scripts/compile.mjs')], { encoding: 'utf8' })
  t.equal(stderr, 'The packages that compile holdfast are not installed yet: run "npm ci" first\n')
  t.equal(status, 1)
})

await t.test('each Node that the package allows runs the program', async (t) => {
  for (const version of ['v20.19.0', 'v22.3.0', 'v24.0.0', 'v100.1.0']) t.notMatch(on(t, version).stderr, /needs Node/)
})
