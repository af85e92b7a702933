import { spawnSync } from 'node:child_process'
import t from 'tap'
import { bound } from '../../../src/durable/posix/limits.js'

await t.test('a bound is a share of the files that the process may open, and at least one', (t) => {
  const script = `
    import { bound } from ${JSON.stringify(new URL('../../../src/durable/posix/limits.js', import.meta.url).href)}
    console.log(JSON.stringify([bound(256, 0.5), bound(32, 0.5), bound(256, 0.001)]))`
  const commands = 'ulimit -n 100 && exec "$0" --input-type=module --eval "$1"'
  const { stdout } = spawnSync('/bin/sh', ['-c', commands, process.execPath, script], { encoding: 'utf8' })
  t.same(JSON.parse(stdout), [50, 32, 1])
  t.equal(bound(1, 1), 1)
  t.end()
})

const mayMount = spawnSync('unshare', ['--mount', 'true']).status === 0

await t.test('the library can be imported where /proc is not mounted', { skip: !mayMount && 'needs root' }, (t) => {
  const script = `
    const library = await import(${JSON.stringify(new URL('../../../src/index.js', import.meta.url).href)})
    const call = library.replaceDirectory('/tmp/holdfast-without-proc/certs', { files: { a: '1' } })
    console.log(JSON.stringify(await call.then(() => 'published', ({ name, code, published }) => [name, code, published])))`
  const commands = 'umount --lazy /proc && exec "$0" --input-type=module --eval "$1"'
  const { stdout, stderr } = spawnSync(
    'unshare',
    ['--mount', '--propagation', 'private', '/bin/sh', '-c', commands, process.execPath, script],
    { encoding: 'utf8' },
  )
  t.equal(stderr, '')
  t.same(JSON.parse(stdout), ['DurableWriteError', 'ENOENT', false])
  t.end()
})
