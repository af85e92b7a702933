/** adopt, from outside: the seven checks as a table, the taking over, and that letting go leaves every file. */
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { replaceFile } from '../../../src/index.js'
import { holder } from '../../check/holders.js'
import { until } from '../../until.js'
import { holdfast, Node } from '../holdfast.js'

const order = ['exists', 'noOtherWriter', 'realDirectory', 'fileSystem', 'safeOwner', 'space', 'content']

interface Shown {
  readonly own: boolean
  readonly checks: readonly { readonly check: string; readonly verdict: string }[]
}

await t.test('adopt makes its seven checks, then takes the directory over, then lets it go', async (t) => {
  const web = { path: 'disk/web', contents: [{ secret: 'web' }] }
  const node = new Node(t, [web])
  const path = node.path('disk/web')
  const adopt = (...args: string[]) => holdfast(['adopt', path, '--config', node.configuration, ...args])
  node.put('Secret', 'web', { 'tls.crt': 'new', 'tls.key': 'key' })

  const missing = await adopt('--dry-run')
  t.match(missing, { code: 1, stdout: /^CHECK +VERDICT +FOUND\nexists +pending +\S+ does not exist\n/ })
  t.equal((await adopt()).code, 1, 'there is nothing to take over')
  t.equal(node.read('disk/web/tls.crt'), undefined)

  mkdirSync(path, { recursive: true })
  writeFileSync(node.path('disk/web/tls.crt'), 'old', { mode: 0o644 })
  writeFileSync(node.path('disk/web/mine'), 'mine')
  const dry = await adopt('--dry-run', '-o', 'json')
  t.equal(dry.code, 1)
  const { own, checks } = JSON.parse(dry.stdout) as Shown
  t.strictSame([own, checks.map(({ check }) => check)], [false, order])
  t.strictSame(
    checks.map(({ verdict }) => verdict),
    [...order.slice(1).map(() => 'passed'), 'refused'],
  )
  const refused = await adopt()
  t.match(refused, {
    code: 1,
    stdout: /\ncontent +refused +it holds what the new content does not have \(mine\)\n +-> set adopt: replace/,
  })
  t.strictSame(readdirSync(path), ['mine', 'tls.crt'])
  t.match(await node.run('sync'), { code: 1, stdout: /TargetForeign/ })
  node.configure([{ ...web, adopt: true }])
  t.match(await node.run('sync'), { code: 1, stdout: /AdoptionRefused: .* cannot be adopted: content: / })
  t.match(await node.run('sync', '--dry-run'), { code: 1, stdout: /AdoptionRefused/ })

  node.configure([{ ...web, adopt: 'replace' }])
  t.match(await adopt('--dry-run'), {
    code: 0,
    stdout: /\ncontent +passed +different: it has mine besides, has another tls\.crt and lacks tls\.key\n$/,
  })
  t.strictSame(readdirSync(path), ['mine', 'tls.crt'])
  t.match(await adopt(), { code: 0, stdout: /\nadopted \S+ sha256:[0-9a-f]{64}\n$/ })
  t.equal(node.read('disk/web/tls.crt'), 'new')
  t.match(await adopt(), { code: 0, stdout: `${path} is holdfast's already\n` })
  t.match(await holdfast(['history', path]), { stdout: /\n1 .* present .*\n0 +- .* adopted +whole / })
  t.match(await holdfast(['history', path, '-o', 'json']), { stdout: /"sequence": 0,[^}]*"publishedAt": null/s })
  t.match(await holdfast(['rollback', path, '--to', '0']), { code: 0, stdout: /^rolled back \S+ to 0 / })
  t.equal(node.read('disk/web/mine'), 'mine')
  t.match(await holdfast(['release', path]), { code: 0 })
  t.match(await node.run('sync'), { code: 0 })

  const before = readdirSync(path)
  node.configure([{ path: 'disk/other', contents: [{ secret: 'web' }] }])
  t.match(await node.run('sync'), { code: 0 })
  t.strictSame(readdirSync(path), before, 'what is left out of the configuration stays')
  t.match(await adopt(), { code: 2, stderr: /is not a directory of/ })
})

await t.test('adopt of equal content runs no hook', async (t) => {
  const afterPublish = [{ exec: ['/bin/false'], retries: 0 }]
  const node = new Node(t, [{ path: 'disk/web', adopt: true, contents: [{ secret: 'web' }], afterPublish }])
  node.put('Secret', 'web', { key: '1' })
  mkdirSync(node.path('disk/web'), { recursive: true })
  writeFileSync(node.path('disk/web/key'), '1', { mode: 0o644 })
  t.match(await node.run('sync', '--hooks'), { code: 0, stdout: /^replaced / })
  node.put('Secret', 'web', { key: '2' })
  t.match(await node.run('sync', '--hooks'), { code: 1, stdout: /the hook "exec false" failed/ })
})

await t.test('the agent waits for a busy writer, and takes over once it has gone', async (t) => {
  const node = new Node(t, [{ path: 'disk/web', adopt: true, contents: [{ secret: 'web' }] }])
  const path = node.path('disk/web')
  node.put('Secret', 'web', { key: '2' })
  mkdirSync(path, { recursive: true })
  writeFileSync(node.path('disk/web/key'), '1', { mode: 0o644 })
  const writer = await holder(t, `exec 3>>${path}/key; hold`)
  const agent = node.agent()
  t.match(await agent.logged('AdoptionPending'), {
    level: 'warn',
    directory: path,
    msg: new RegExp(
      `noOtherWriter: process ${writer} \\(sh\\) has ${path}/key as an open file, for writing; .*wait until`,
    ),
  })
  await until('so does its status', async () => / AdoptionPending /.test((await node.run('status')).stdout))
  const there = readdirSync(node.path('disk')).filter((name) => !name.endsWith('.lock'))
  t.strictSame([node.read('disk/web/key'), there], ['1', ['web']], 'nothing was changed')
  process.kill(writer, 'SIGKILL')
  await agent.logged('Published')
  t.equal(node.read('disk/web/key'), '2')
  t.match(await holdfast(['history', path]), { stdout: /\n1 .* present .*\n0 +- .* adopted +whole / })
  t.equal(await agent.end('SIGTERM'), 0)
})

await t.test('adopt refuses the form symlink, a target that is a link, and an unknown desired content', async (t) => {
  const node = new Node(t, [{ path: 'disk/web', publish: 'symlink', contents: [{ secret: 'web' }] }])
  node.put('Secret', 'web', { key: '1' })
  const adopt = (...args: string[]) =>
    holdfast(['adopt', node.path('disk/web'), '--config', node.configuration, ...args])
  t.match(await adopt(), { code: 2, stderr: /has publish: symlink/ })
  node.configure([{ path: 'disk/web', adopt: 'replace', contents: [{ secret: 'web' }] }])
  mkdirSync(node.path('disk/real'), { recursive: true })
  symlinkSync('real', node.path('disk/web'))
  t.match(await adopt(), { code: 1, stdout: /\nrealDirectory +refused +\S+ is a symbolic link/ })
  t.match(await node.run('sync'), { code: 1, stdout: /AdoptionRefused: .*realDirectory/ })
  node.remove('web')
  t.match(await adopt(), { code: 1, stderr: /what \S+ must hold is not known: / })
})

await t.test('adopt obeys beforePublish and requireProven as any publication does', async (t) => {
  const beforePublish = [{ exec: ['sh', '-c', '! grep bad "$1/v"', 'sh', '{dir}'] }]
  const web = { path: 'disk/web', beforePublish, contents: [{ configMap: 'web' }] }
  const node = new Node(t, [web])
  const path = node.path('disk/web')
  const adopt = (...args: string[]) => holdfast(['adopt', path, '--config', node.configuration, ...args])
  mkdirSync(path, { recursive: true })
  writeFileSync(node.path('disk/web/v'), 'old', { mode: 0o644 })
  node.put('ConfigMap', 'web', { v: 'bad' })
  t.match(await adopt(), { code: 1, stderr: /its new content is rejected \(directories\[0\]\.beforePublish\[0\]\)/ })
  t.equal(node.read('disk/web/v'), 'old')
  node.put('ConfigMap', 'web', { v: 'good' })
  const { unproven } = await replaceFile(node.path('probe'), '')
  if (unproven) {
    node.configure([web], { requireProven: true })
    for (const args of [['--dry-run'], []]) t.match(await adopt(...args), { code: 1, stderr: /remove requireProven/ })
    t.equal(node.read('disk/web/v'), 'old')
    node.configure([web])
  }
  const adopted = await adopt('-o', 'json')
  t.match(adopted, { code: 0, ...(unproven && { stderr: /durability is not proven/ }) })
  t.same((JSON.parse(adopted.stdout) as { unproven?: true }).unproven, unproven)
  t.equal(node.read('disk/web/v'), 'good')
})
