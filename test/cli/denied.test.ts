/** Commands and the library, of a user who may not look: a denial is never told as absence. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync } from 'node:fs'
import t from 'tap'
import { readPublication, replaceDirectory, verifyDirectory } from '../../src/index.js'
import { executableForOthers } from '../project.js'
import { Node } from './holdfast.js'

const skip = process.geteuid?.() === 0 ? false : 'needs root'
const read = 'run as a user who may read what is there, or grant CAP_DAC_OVERRIDE'

for (const [what, mode] of [
  ['the directory above it', 0o700],
  ['its record alone', 0o755],
] as const) {
  await t.test(`a target of which another user may not read ${what}`, { skip }, async (t) => {
    const node = new Node(t, [{ path: 'private/certs', contents: [{ secret: 'web' }] }])
    const target = node.path('private/certs')
    mkdirSync(node.path('private'))
    await replaceDirectory(target, { files: { 'tls.crt': 'x' } })
    chmodSync(node.root, 0o755)
    chmodSync(node.objects, 0o755)
    chmodSync(node.configuration, 0o644)
    chmodSync(node.path('private'), mode)

    await t.test('the library', async (t) => {
      process.seteuid?.(65_534)
      t.teardown(() => process.seteuid?.(0))
      const denied = { reason: 'AccessDenied', code: 'EACCES', published: false, message: read }
      await t.rejects(readPublication(target), denied)
      await t.rejects(verifyDirectory(target), denied)
    })

    const program = executableForOthers(node.root)
    const other = (...args: string[]) => {
      const words = ['--reuid', '65534', '--regid', '65534', '--clear-groups', process.execPath, program, ...args]
      const { status, stdout, stderr } = spawnSync('setpriv', words, { encoding: 'utf8' })
      return { status, said: stdout + stderr }
    }
    for (const [args, code] of [
      [['history', target], 1],
      [['hold', target, '--reason', 'x'], 1],
      [['remove', target], 1],
      [['rollback', target], 1],
      [['verify', '--config', node.configuration], 4],
      [['status', '--config', node.configuration], 0],
    ] as const) {
      const { status, said } = other(...args)
      const changes = args[0] === 'hold' || args[0] === 'remove'
      t.match(said, changes ? /EACCES; .*run as/ : read, args[0])
      t.notMatch(said, /published nothing|nothing is published|was never published/, args[0])
      if (!changes && args[0] !== 'verify') t.match(said, 'AccessDenied', args[0])
      t.equal(status, code, args[0])
    }
  })
}

await t.test('a status that another user may not read', { skip }, async (t) => {
  const node = new Node(t, [{ path: 'certs', contents: [{ secret: 'web' }] }])
  mkdirSync(node.path('state'), { mode: 0o700 })
  chmodSync(node.root, 0o755)
  chmodSync(node.configuration, 0o644)
  const program = executableForOthers(node.root)
  const words = ['--reuid', '65534', '--regid', '65534', '--clear-groups', process.execPath, program, 'status']
  const { status, stderr } = spawnSync('setpriv', [...words, '--config', node.configuration], { encoding: 'utf8' })
  t.match(
    stderr,
    /AccessDenied could not read .*status\.json: open .*: EACCES; .*; run as a user who may read what is there/,
  )
  t.equal(status, 1)
})
