/** Adoption: seven checks, each of which keeps everything as it is until it has passed. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { examineAdoption, takeOver } from '../../../src/durable/adopt/adoption.js'
import type { Adopting } from '../../../src/durable/types.js'
import type { Free } from '../../../src/durable/file-system.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { Alone, before, files, scene } from '../adoption-scene.js'
import { contents } from '../scratch.js'

await t.test('an adoption takes over files that the new content lacks only with replace', async (t) => {
  const { target, root, refuses, take, pendingHooks } = scene(t, { ...files, 'ca.crt': 'mine' })
  await refuses('content', 'refused', /does not have \(ca\.crt\)/)
  t.match(await take({ adopt: takeOver({ replace: true }) }), { outcome: 'replaced' })
  t.strictSame(contents(target), files)
  t.strictSame(await pendingHooks(), ['reload'], 'no consumer knows what has changed')
  const [copy = ''] = readdirSync(root).filter((name) => name.includes('.0-'))
  t.equal(readFileSync(join(root, copy, 'certs/ca.crt'), 'utf8'), 'mine')
})

await t.test('a process that has a file of it open for writing is waited for; a reader is not', async (t) => {
  const { target, refuses, take, examine } = scene(t, before, new NodeFileSystem())
  const child = spawn('sh', [
    '-c',
    `exec 3<'${target}/tls.key'; read x; exec 4>>'${target}/tls.key'; echo; read x; exec 4>&-; echo; read x`,
  ])
  t.teardown(() => child.kill('SIGKILL'))
  t.same((await examine()).open, [])
  child.stdin.write('\n')
  await once(child.stdout, 'data')
  await refuses('noOtherWriter', 'pending', /process \d+ \(sh\) has \S*tls\.key as an open file, for writing/)
  child.stdin.write('\n')
  await once(child.stdout, 'data')
  t.match(await take(), { outcome: 'replaced' })
})

await t.test('an adoption waits for a file that another program writes during the checks', async (t) => {
  const { target, publishBy, take } = scene(t)
  class Beside extends Alone {
    override readonly free = async (): Promise<Free> => {
      writeFileSync(join(target, 'tls.crt'), 'newer')
      return Promise.resolve({ bytes: 1 << 30, inodes: undefined, blockSize: 4096 })
    }
  }
  await t.rejects(publishBy(new Beside()), {
    reason: 'AdoptionPending',
    message: /: noOtherWriter: its content changed/,
  })
  t.strictSame(contents(target), { ...before, 'tls.crt': 'newer' })
  t.match(await take(), { outcome: 'replaced' })
})

await t.test('an adoption reads no file larger than a key, and names a key that is open to all users', async (t) => {
  const { target, fs, take, requestFor } = scene(t)
  writeFileSync(join(target, 'large.key'), '')
  truncateSync(join(target, 'large.key'), 4 * 1024 * 1024 + 1)
  chmodSync(join(target, 'tls.key'), 0o644)
  const paths: string[] = []
  const adopt: Adopting = { replace: false, keyPairs: (found) => Promise.resolve(void paths.push(...found.paths)) }
  const asked = { ...files, 'large.key': 'small' }
  const { checks } = await examineAdoption(fs, requestFor({ attributes: 'keep' }, asked), adopt)
  t.match(checks[4], {
    verdict: 'passed',
    message: /everybody may read large\.key and tls\.key, which attributes: keep leaves so$/,
  })
  t.strictSame(paths, ['large.key', 'tls.crt', 'tls.key', 'tls.crt', 'tls.key'])
  t.match(await take({ adopt: takeOver(adopt) }, asked), { outcome: 'replaced' })
})
