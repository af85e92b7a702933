/** Which static pod mounts a path by itself, under any name. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { describeHostPathUser } from '../../src/static-pods/host-path-users.js'
import { scratchWith } from '../durable/scratch.js'

await t.test('hostPathUsers knows a path and a volume by their names through symbolic links above them', async (t) => {
  const [root, manifests] = scratchWith(t, 'manifests')
  for (const name of ['run', 'manifests']) mkdirSync(join(root, name))
  symlinkSync('run', join(root, 'var'))
  const seen = async (hostPath: string, path: string): Promise<boolean> => {
    const volumes = [{ name: 'certs', hostPath: { path: join(root, hostPath) } }]
    const spec = { containers: [{ name: 'web', image: 'web' }], volumes }
    writeFileSync(
      join(manifests, 'web.json'),
      JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec }),
    )
    const found = await describeHostPathUser(join(root, path), manifests)
    if (found !== undefined) t.equal(found, `the static pod web mounts it (${join(manifests, 'web.json')})`)
    return found !== undefined
  }
  t.ok(await seen('run/certs', 'run/certs'))
  t.ok(await seen('run/certs', 'var/certs'))
  t.ok(await seen('var/certs', 'run/certs'))
  t.ok(await seen('var/certs/tls.crt', 'run/certs'))
  t.notOk(await seen('var', 'run/certs'), 'what is above it shows what is published next')
  t.notOk(await seen('var/other', 'run/certs'))
  t.notOk(await seen('gone/certs', 'run/certs'))
})
