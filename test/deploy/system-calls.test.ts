/**
 * The unit of deploy/systemd allows every system call that the program makes: it runs here with all others refused, as the unit
 * refuses them, and there are none. The kernel's view is strace's, the meaning of `@system-service` systemd's own.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { scratch } from '../durable/scratch.js'
import { project } from '../project.js'
import { deploy } from './manifests.js'

const answers = (program: string): boolean => spawnSync(program, ['--version']).status === 0
const missing = ['strace', 'systemd-analyze'].filter((program) => !answers(program))
const skip = missing.length === 0 ? false : `needs ${missing.join(' and ')}`

/** The names of the calls in these sets, and in the sets that are in them. */
function expand(sets: readonly string[], known = new Set<string>()): Set<string> {
  for (const set of sets) {
    if (known.has(set)) continue
    known.add(set)
    if (!set.startsWith('@')) continue
    const listed = execFileSync('systemd-analyze', ['syscall-filter', set], { encoding: 'utf8' })
    const lines = listed.split('\n').slice(1)
    expand(
      lines.map((line) => line.trim()).filter((line) => /^@?\w/.test(line)),
      known,
    )
  }
  return known
}

await t.test('the unit’s filter refuses no system call that the program makes', { skip }, async (t) => {
  const unit = readFileSync(join(deploy, 'systemd/holdfast.service'), 'utf8')
  const [, sets = ''] = /^SystemCallFilter=(.*)$/m.exec(unit) ?? []
  // Without it the first call that is not allowed would be the program's end.
  t.match(unit, /^SystemCallErrorNumber=EPERM$/m)
  const allowed = [...expand(sets.split(' '))].filter((name) => !name.startsWith('@'))
  t.ok(allowed.length > 200, `${allowed.length} system calls`)

  const directory = scratch(t)
  mkdirSync(join(directory, 'objects'))
  const secret = { metadata: { name: 'tls' }, data: { key: Buffer.from('key').toString('base64') } }
  writeFileSync(join(directory, 'objects/tls.yaml'), JSON.stringify({ apiVersion: 'v1', kind: 'Secret', ...secret }))
  const configuration = {
    apiVersion: 'holdfast.dev/v1alpha1',
    kind: 'AgentConfiguration',
    stateDirectory: 'state',
    source: { files: { path: 'objects' } },
    directories: [{ path: 'node/tls', contents: [{ secret: 'tls' }] }],
  }
  writeFileSync(join(directory, 'holdfast.yaml'), JSON.stringify(configuration))
  const log = join(directory, 'trace')
  // `?`: this strace, or this processor, may not know it.
  const others = `!${allowed.map((name) => `?${name}`).join()}`
  const traced = ['-f', '-qq', '-o', log, '-e', `trace=${others}`, '-e', `inject=${others}:error=EPERM`]
  const program = [process.execPath, join(project, 'bin/holdfast.js')]
  const run = spawnSync('strace', [...traced, ...program, 'sync', '--config', 'holdfast.yaml'], {
    cwd: directory,
    encoding: 'utf8',
    env: { PATH: process.env.PATH },
  })
  t.equal(run.status, 0, run.stderr)
  t.match(run.stdout, /^created /)
  t.equal(readFileSync(join(directory, 'node/tls/key'), 'utf8'), 'key')
  const refused = readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => line.includes('(INJECTED)'))
  t.strictSame(refused, [])
})
