/** A rollout that exchanges the directory with its probe's kubeconfig, or with the files that this names, against a real TLS server. */
import { once } from 'node:events'
import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { ReadinessSettings } from '../../../src/static-pods/ready/readiness-settings.js'
import { base64, kubeconfig } from '../../kubernetes/credentials/kubeconfig-text.js'
import { pki, probedNode, resumes, rotates, showsTheOldCredential } from '../ready/probed-node.js'

/** `named`: the kubeconfig lies beside the directory, and names files in it. `inline`: it lies in the directory, and holds all. */
const kinds = ['named', 'inline'] as const
type Kind = (typeof kinds)[number]

async function scene(t: Test, kind: Kind) {
  const probed = await probedNode(t)
  const { node, next, origin, readiness } = probed
  const named = join(node.root, 'admin.conf')
  const inline = (directory: string, files = directory) => {
    const data = (name: string) => base64(readFileSync(join(files, name), 'utf8'))
    const user = { 'client-certificate-data': data('client.crt'), 'client-key-data': data('client.key') }
    const text = kubeconfig({ server: origin, 'certificate-authority-data': data('ca.crt') }, user, 'kube-system')
    writeFileSync(join(directory, 'admin.conf'), text)
  }
  inline(node.pki)
  inline(next)
  const user = { 'client-certificate': 'pki/client.crt', 'client-key': 'pki/client.key' }
  writeFileSync(named, kubeconfig({ server: origin, 'certificate-authority': 'pki/ca.crt' }, user, 'kube-system'))
  const settings: ReadinessSettings = {
    ...readiness,
    urls: [],
    authority: null,
    kubelet: null,
    mirrorPod: {
      kubeconfig: kind === 'named' ? named : join(node.pki, 'admin.conf'),
      context: null,
      namespace: null,
      nodeName: 'n1',
    },
  }
  return { ...probed, named, inline, request: () => probed.request(settings) }
}

t.setTimeout(120_000)

for (const kind of kinds) {
  await t.test(`${kind}: a rotation of the authority within the directory succeeds`, async (t) => {
    await rotates(t, await scene(t, kind))
  })

  const asked = `${kind}: a probe presents the old credential to a server that still takes only old clients`
  await t.test(asked, async (t) => {
    await showsTheOldCredential(t, await scene(t, kind))
  })

  for (const lost of kind === 'named' ? ['ca.crt', 'client.crt', 'client.key'] : ['admin.conf']) {
    await t.test(`${kind}: a rollout that loses ${lost} with the exchange goes back`, async (t) => {
      // Each waits for its timeout: at the same time.
      const tries = [false, true].map(async (isBroken) => {
        const { node, next, means, request, isOld } = await scene(t, kind)
        if (isBroken) writeFileSync(join(next, lost), 'broken')
        else rmSync(join(next, lost))
        t.match(await node.rollout(await request(), () => 'ready', means()), {
          outcome: 'taken-back',
          message: new RegExp(`mirror pod: .*${lost.replace('.', '\\.')}`),
        })
        t.ok(isOld())
      })
      await Promise.all(tries)
    })
  }

  await t.test(`${kind}: a resume trusts and presents the old directory's files, and goes back without`, async (t) => {
    for (const isLost of [false, true]) {
      const probed = await scene(t, kind)
      if (isLost) rmSync(join(probed.next, kind === 'named' ? 'ca.crt' : 'admin.conf'))
      await resumes(t, probed, isLost)
    }
  })

  await t.test(
    `${kind}: 401, 403 and an unknown authority refuse a rollout; an API server that is down does not`,
    async (t) => {
      const { node, next, answer, server, start, named, origin, inline, means, request, isOld } = await scene(t, kind)
      const refuses = async (message: RegExp) => {
        await t.rejects(
          node.rollout(await request(), () => 'ready', means()),
          message,
        )
        t.ok(isOld())
        t.same(node.versions(), { web: '1' })
      }
      for (const status of [401, 403]) {
        answer.status = status
        await refuses(new RegExp(`mirror pod: HTTP ${status}.*; nothing was changed; `))
      }
      answer.status = 200
      const stranger = join(node.root, 'stranger')
      await pki(stranger, 'other')
      start(stranger)
      await refuses(/mirror pod: .*nothing was changed; name in the kubeconfig the authority/)
      // The new directory brings the right files.
      start(next)
      t.match(await node.rollout(await request(), () => 'ready', means()), { outcome: 'ready' })
      t.notOk(isOld())
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
      await pki(next, 'other')
      inline(next)
      const user = { 'client-certificate': 'pki/client.crt', 'client-key': 'pki/client.key' }
      writeFileSync(named, kubeconfig({ server: origin, 'certificate-authority': 'pki/ca.crt' }, user))
      const outcome = await node.rollout(await request(), () => 'ready', means())
      t.match(outcome, { outcome: 'taken-back', message: /mirror pod: .*ECONNREFUSED/ })
    },
  )
}

await t.test('a kubeconfig through a link in its last part counts as one of the directory', async (t) => {
  const { node, next, readiness, means, request: own, isOld } = await scene(t, 'inline')
  const link = join(node.root, 'link.conf')
  symlinkSync('pki/admin.conf', link)
  const request = await own()
  const { mirrorPod } = request.readiness
  t.ok(mirrorPod && readiness)
  if (!mirrorPod) return
  const linked = { ...request, readiness: { ...request.readiness, mirrorPod: { ...mirrorPod, kubeconfig: link } } }
  t.match(await node.rollout(linked, () => 'ready', means()), { outcome: 'ready' }, 'the old credential is still known')
  t.notOk(isOld())
  t.ok(next)
})
