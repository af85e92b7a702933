/** The bundled program where npm has left koffi out, or its binary for this platform. */
import { spawnSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { scratch } from '../durable/scratch.js'
import { project } from '../project.js'

/** A copy of the bundled program, with these packages. */
function installed(t: Test, packages: readonly string[]): string {
  const copy = scratch(t)
  cpSync(join(project, 'dist/program'), copy, { recursive: true })
  for (const name of packages) {
    cpSync(join(project, 'node_modules', name), join(copy, 'node_modules', name), { recursive: true })
  }
  return join(copy, 'bin/holdfast.js')
}

await t.test('the program says how to install koffi and its binary, where one is missing', async (t) => {
  for (const packages of [[], ['koffi']]) {
    const words = [installed(t, packages), 'replace', '/x', '--from', project]
    const { status, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8' })
    t.match(stderr, `whose binary for linux-${process.arch} is not installed: install holdfast on this platform with`)
    t.match(stderr, 'npm install --include=optional')
    t.notMatch(stderr, /did you bundle|Require stack/)
    t.equal(status, 1)
  }
})
