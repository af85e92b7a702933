/** A directory of certificates has one owner: the agent or the installer, by its record; the other one is refused. */
import { existsSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Node } from '../cli/holdfast.js'
import { run } from './command.js'
import { InstallerApi } from './install/installer-api.js'
import { modeOf } from './pods.js'

/** One directory that an installer's flags and an agent's configuration both name, with other modes. */
async function scene(t: Test) {
  const api = await InstallerApi.start(t)
  api.putRevision(6)
  api.putSecret('serving', { 'tls.crt': 'crt' })
  const target = join(api.certificates, 'secrets', 'serving')
  const agent = new Node(t, [{ path: target, fileMode: '0644', contents: [{ secret: 'serving' }] }])
  agent.put('Secret', 'serving', { 'tls.crt': 'crt' })
  const install = (...more: string[]) =>
    api.install(6, [`--cert-dir=${api.certificates}`, '--cert-secrets=serving', ...more])
  const file = join(target, 'tls.crt')
  return { api, target, file, agent, install, sync: (...more: string[]) => agent.run('sync', ...more) }
}

const recordIn = (message: string): string =>
  /remove its record (\S+\/\.holdfast-[0-9a-f]{16}\.\d+)/.exec(message)?.[1] ?? ''

await t.test("sync refuses an installer's directory until its record is removed", async (t) => {
  const { target, file, install, sync } = await scene(t)
  const installed = await install()
  t.equal(installed.code, 0, installed.stderr)
  const { ino } = statSync(file)
  for (const more of [[], ['--dry-run']]) {
    const refused = await sync('-o', 'json', ...more)
    t.equal(refused.code, 1, refused.stderr)
    t.match(JSON.parse(refused.stdout), {
      directories: [
        {
          path: target,
          outcome: 'failed',
          reason: 'TargetForeign',
          message: `holdfast install published ${target}, and holdfast agent is now asked to publish it too; holdfast left ${target} as it was`,
        },
      ],
    })
    t.match(refused.stdout, /leave it out of the agent's configuration/)
  }
  t.equal(statSync(file).ino, ino)
  t.equal(modeOf(file), '600')

  const again = await install()
  t.equal(again.code, 0, again.stderr)
  rmSync(recordIn((await sync('-o', 'json')).stdout))
  const taken = await sync()
  t.equal(taken.code, 0, taken.stderr)
  t.equal(modeOf(file), '644')
})

await t.test("install refuses an agent's directory, and makes no manifest live", async (t) => {
  const { api, target, file, agent, install, sync } = await scene(t)
  const published = await sync()
  t.equal(published.code, 0, published.stderr)
  for (const more of [[], ['--dry-run']]) {
    const refused = await install(...more)
    t.equal(refused.code, 1, refused.stderr)
    t.match(
      refused.stderr,
      `holdfast agent published ${target}, and holdfast install is now asked to publish it too; holdfast left ${target} as it was; leave out --cert-dir`,
    )
  }
  t.equal(modeOf(file), '644')
  t.notOk(existsSync(api.manifest()))
  t.notOk(existsSync(api.revision(6)), 'nothing was written')
  agent.put('Secret', 'serving', { 'tls.crt': 'newer' })
  t.equal((await sync()).code, 0, 'its owner goes on')

  rmSync(recordIn((await install()).stderr))
  const installed = await install()
  t.equal(installed.code, 0, installed.stderr)
  t.equal(modeOf(file), '600')
})

await t.test('a missing directory has no owner', async (t) => {
  const { target, file, install, sync } = await scene(t)
  t.equal((await sync()).code, 0)
  rmSync(target, { recursive: true })
  t.equal((await install()).code, 0)
  t.equal(modeOf(file), '600')
})

await t.test('replace --force by hand publishes over an agent, and leaves no owner', async (t) => {
  const { target, file, agent, install, sync } = await scene(t)
  t.equal((await sync()).code, 0)
  const replaced = await run(['replace', target, '--from', agent.objects, '--force'])
  t.equal(replaced.code, 0, replaced.stderr)
  t.equal((await install()).code, 0)
  t.equal(modeOf(file), '600')
})
