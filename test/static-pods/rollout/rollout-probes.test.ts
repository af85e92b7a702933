/** A rollout that exchanges the directory with its own probes' files, against real TLS servers that want a client certificate. */
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { ReadinessSettings } from '../../../src/static-pods/ready/readiness-settings.js'
import { pki, probedNode, resumes, rotates, showsTheOldCredential } from '../ready/probed-node.js'

await t.test('a rotation of the authority within the directory succeeds', async (t) => {
  await rotates(t, await probedNode(t))
})

await t.test('a probe presents the old credential to a server that still takes only old clients', async (t) => {
  await showsTheOldCredential(t, await probedNode(t))
})

for (const lost of ['ca.crt', 'client.crt', 'client.key']) {
  await t.test(`a rollout that loses ${lost} with the exchange goes back`, async (t) => {
    const { node, next, means, request, isOld } = await probedNode(t)
    rmSync(join(next, lost))
    t.match(await node.rollout(await request(), () => 'ready', means()), {
      outcome: 'taken-back',
      message: new RegExp(`could not read .*${lost.replace('.', '\\.')}: ENOENT`),
    })
    t.ok(isOld())
  })
}

await t.test("a resume after the exchange trusts and presents the old directory's files", async (t) => {
  for (const isLost of [false, true]) {
    const probed = await probedNode(t)
    if (isLost) writeFileSync(join(probed.next, 'ca.crt'), 'no certificate')
    await resumes(t, probed, isLost)
  }
})

await t.test(
  '401, 403 and an unknown authority refuse a rollout before any change; a pod that is down does not',
  async (t) => {
    const { node, next, answer, readiness, server, means, request, isOld } = await probedNode(t)
    const refuses = async (message: RegExp, settings?: ReadinessSettings) => {
      await t.rejects(
        node.rollout(await request(settings), () => 'ready', means()),
        message,
      )
      t.ok(isOld())
      t.same(node.versions(), { web: '1' })
    }
    for (const status of [401, 403]) {
      answer.status = status
      await refuses(new RegExp(`HTTP ${status}; nothing was changed; allow`), { ...readiness, kubelet: null })
      await refuses(new RegExp(`kubelet: HTTP ${status}.*nothing was changed; name with --kubelet-cert`), {
        ...readiness,
        urls: [],
      })
    }
    answer.status = 200
    const stranger = join(node.root, 'stranger')
    await pki(stranger, 'other')
    const unknown = join(stranger, 'ca.crt')
    await refuses(/nothing was changed; name with --ready-ca the authority/, { ...readiness, authority: unknown })
    const kubelet = readiness.kubelet && { ...readiness.kubelet, authority: unknown }
    await refuses(/nothing was changed; name with --kubelet-ca the authority/, { ...readiness, urls: [], kubelet })
    await refuses(/could not read .*none: ENOENT/, { ...readiness, authority: join(next, 'none') })
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
    t.match(await node.rollout(await request(), () => 'ready', means()), {
      outcome: 'taken-back',
      message: /ECONNREFUSED/,
    })
  },
)
