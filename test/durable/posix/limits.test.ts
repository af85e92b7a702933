import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { bound } from '../../../src/durable/posix/file-system.js'
import { executable } from '../../project.js'
import { scratch } from '../scratch.js'

await t.test('a bound is a share of the files that the process may open, and at least one', async (t) => {
  const script = `
    import { bound } from ${JSON.stringify(new URL('../../../src/durable/posix/file-system.js', import.meta.url).href)}
    console.log(JSON.stringify([bound(256, 0.5), bound(32, 0.5), bound(256, 0.001)]))`
  const commands = 'ulimit -n 100 && exec "$0" --input-type=module --eval "$1"'
  const { stdout } = spawnSync('/bin/sh', ['-c', commands, process.execPath, script], { encoding: 'utf8' })
  t.same(JSON.parse(stdout), [50, 32, 1])
  t.equal(bound(1, 1), 1)
})

const advice = '/proc is not mounted here: in this chroot or container, run mount -t proc proc /proc first'
const mayMount = spawnSync('unshare', ['--mount', 'true']).status === 0

await t.test(
  'without /proc the library can be imported, and calls and commands say to mount it',
  { skip: !mayMount && 'needs root' },
  async (t) => {
    const script = `
    const library = await import(${JSON.stringify(new URL('../../../src/index.js', import.meta.url).href)})
    const call = library.replaceDirectory('/tmp/holdfast-without-proc/certs', { files: { a: '1' } })
    const shown = ({ name, code, published, advice }) => [name, code, published, advice]
    console.log(JSON.stringify(await call.then(() => 'published', shown)))`
    const file = join(scratch(t), 'holdfast.yaml')
    const directories = [{ path: 'certs', contents: [{ secret: 'a' }] }]
    const kind = { apiVersion: 'holdfast.dev/v1alpha1', kind: 'AgentConfiguration' }
    const source = { namespace: 'demo', files: { path: 'objects' } }
    writeFileSync(file, JSON.stringify({ ...kind, stateDirectory: 'state', source, directories }))
    const commands =
      'umount --lazy /proc && "$0" --input-type=module --eval "$1" && exec "$0" "$2" check --config "$3" --log-format text'
    const { stdout, stderr } = spawnSync(
      'unshare',
      ['--mount', '--propagation', 'private', '/bin/sh', '-c', commands, process.execPath, script, executable, file],
      { encoding: 'utf8' },
    )
    t.same(JSON.parse(stdout), ['DurableWriteError', 'ENOENT', false, advice])
    t.match(stderr, new RegExp(`ERROR .*/proc/self/limits.*; ${advice}`))
  },
)
