/** The next revision's installation removes the staging of a killed one: no later command names the killed revision again. */
import { readdirSync } from 'node:fs'
import t from 'tap'
import { DurableCalls } from '../../../src/durable/index.js'
import { revisionRequest } from '../../../src/static-pods/install/install-plan.js'
import { intercepted, Killed } from '../../durable/intercepted.js'
import { kept } from '../../durable/scratch.js'
import { NodeDisk } from '../pods.js'

await t.test('no private key of a killed installation stays', async (t) => {
  const node = new NodeDisk(t)
  const install = async (revision: number, durable: DurableCalls): Promise<unknown> => {
    const files = new Map([['secrets/tls/tls.key', { content: Buffer.from(`key ${revision}`), mode: 0o600 }]])
    const content = { files, directories: [], manifests: [], objects: [] }
    return durable.publishDirectories([revisionRequest(node.resources, 'web-pod', revision, content)], undefined)
  }
  let isDead = false
  const { fs } = intercepted((call) => {
    isDead ||= call === 'rename'
    if (isDead) throw new Killed()
  })
  await install(6, new DurableCalls(fs)).catch(() => undefined)
  t.ok(kept(node.resources).includes('staging'), 'the killed one left what it had staged')
  await install(7, new DurableCalls())
  t.notOk(kept(node.resources).includes('staging'))
  t.same(
    readdirSync(node.resources).filter((name) => !name.startsWith('.')),
    ['web-pod-7'],
  )
})
