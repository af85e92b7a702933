/** README's demo (scripts/demo.sh), as far as it goes without a person. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { project } from '../project.js'
import { scratch } from './holdfast.js'

await t.test('the demo ends with an agent that does not start, and leaves nothing', async (t) => {
  const root = scratch(t)
  cpSync(join(project, 'scripts/demo.sh'), join(root, 'scripts/demo.sh'))
  cpSync(join(project, 'scripts/demo'), join(root, 'scripts/demo'), { recursive: true })
  for (const name of ['bin', 'tmp']) mkdirSync(join(root, name))
  writeFileSync(join(root, 'bin/holdfast.js'), `process.stderr.write('not built\\n')\nprocess.exitCode = 1\n`)
  const { status, stderr } = spawnSync('bash', [join(root, 'scripts/demo.sh')], {
    encoding: 'utf8',
    env: { ...process.env, TMPDIR: join(root, 'tmp') },
    // The time of one that waits for ever.
    timeout: 60_000,
    killSignal: 'SIGTERM',
  })
  t.match({ status, stderr }, { status: 1, stderr: 'not built\n' })
  t.strictSame(readdirSync(join(root, 'tmp')), [])
})
