/** `replace` and `write` under a umask that takes permissions from the owner. */
import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { executable } from '../project.js'
import { ended, scratch } from './holdfast.js'

/** Root keeps none of its capabilities: with CAP_DAC_OVERRIDE no mode denies anything. */
const bare = process.geteuid?.() === 0 ? ['setpriv', '--bounding-set=-all', '--inh-caps=-all'] : []

for (const umask of ['0777', '0700', '0377']) {
  await t.test(`replace and write publish under umask ${umask}, with the modes that they were asked for`, async (t) => {
    const root = scratch(t)
    const source = join(root, 'source')
    mkdirSync(source)
    writeFileSync(join(source, 'tls.crt'), 'content')
    const run = (...args: string[]) => {
      const command = [...bare, process.execPath, executable, ...args]
      return ended(spawn('sh', ['-c', `umask ${umask}; exec "$@"`, 'sh', ...command], { stdio: 'pipe' }))
    }
    // Twice: the first run leaves a lock file that the second must be able to open.
    for (const round of ['first', 'second']) {
      const replaced = await run(
        'replace',
        join(root, 'directory'),
        '--from',
        source,
        '--mode',
        '0750',
        '--file-mode',
        '0640',
      )
      t.equal(replaced.code, 0, `${round}: ${replaced.stderr}`)
      const written = await run('write', join(root, 'file'), '--from', join(source, 'tls.crt'), '--mode', '0644')
      t.equal(written.code, 0, `${round}: ${written.stderr}`)
    }
    t.equal(readFileSync(join(root, 'directory/tls.crt'), 'utf8'), 'content')
    t.equal(statSync(join(root, 'directory/tls.crt')).mode & 0o7777, 0o640)
    t.equal(statSync(join(root, 'file')).mode & 0o7777, 0o644)
    const staged = readdirSync(root).filter((name) => /^\.holdfast-[0-9a-f]+-/.test(name))
    t.strictSame(staged, [], 'no staged content lies beside the targets')
  })
}
