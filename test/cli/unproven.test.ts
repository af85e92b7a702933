/** Where durability is not proven, every command that says that something is durable warns, and refuses on request. */
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { commands } from '../../src/cli/program.js'
import { DurableCalls, exchange, replaceDirectory, replaceFile, setHold, syncPath } from '../../src/durable/index.js'
import { recordLastKnownGood } from '../../src/static-pods/monitor/last-known-good.js'
import { scratch } from '../durable/scratch.js'
import { podText } from '../static-pods/pods.js'
import { Pair, Running } from '../torture/pair.js'
import { until } from '../until.js'
import { runInProcess } from './in-process.js'

const memory = '/dev/shm'
const warning = (path: string): string => `${path} is on a file system on which durability is not proven`

type Claim =
  /** It changes nothing, or nothing that is to stay. */
  | { readonly claims: 'nothing' }
  /** Another test looks, by these words. */
  | { readonly file: string; readonly words: string }
  /** It publishes as another one does, by the same calls. */
  | { readonly like: 'sync' }
  /** It runs until a signal ends it. */
  | { readonly runs: readonly string[]; readonly path: string }
  | {
      readonly args: readonly string[]
      readonly input?: string
      /** The path in the warning. */
      readonly path: string
      /** The place of requireProven; `never`: the operation is the lesser evil in any case. */
      readonly refuses: 'flag' | 'configuration' | 'never'
    }

const root = scratch(t, memory)
const at = (name: string): string => join(root, name)
// A configuration names nothing in /dev.
const outside = scratch(t)
symlinkSync(root, join(outside, 'memory'))
const configured = (name: string): string => join(outside, 'memory', name)
const web = { path: configured('disk/web'), history: 3, contents: [{ secret: 'web' }] }
const places = { resourceDirectory: at('resources'), manifestDirectory: at('manifests'), target: 'web' }

/** Writes the two configurations: one without requireProven, and one with it. */
function configure(prefix: string, directory: object): void {
  for (const requireProven of [false, true]) {
    const document = {
      apiVersion: 'holdfast.dev/v1alpha1',
      kind: 'AgentConfiguration',
      stateDirectory: at('state'),
      requireProven,
      source: { namespace: 'demo', files: { path: at('objects') } },
      directories: [directory],
    }
    writeFileSync(at(`${prefix}${requireProven ? 'strict' : 'holdfast'}.yaml`), JSON.stringify(document))
  }
}

async function publish(key: string): Promise<void> {
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'web' }, stringData: { key } }
  writeFileSync(at('objects/web.yaml'), JSON.stringify(secret))
  const { code, stdout, stderr } = await runInProcess(['sync', '--config', at('holdfast.yaml')])
  if (code !== 0) throw new Error(`${stdout}${stderr}`)
}

for (const name of ['objects', 'from', 'disk', 'disk/taken', 'state']) mkdirSync(at(name))
writeFileSync(at('from/key'), '1')
writeFileSync(at('disk/taken/key'), '1')
configure('', web)
configure('adopt-', { ...web, path: configured('disk/taken'), adopt: 'replace' })
for (const key of ['1', '2']) await publish(key)
for (const name of ['held', 'released', 'gone']) await replaceDirectory(at(name), { files: { key: '1' } })
await setHold(at('released'), { reason: '', since: 0, until: null })
for (const revision of ['3', '7']) {
  mkdirSync(at(`resources/web-pod-${revision}`), { recursive: true })
  writeFileSync(at(`resources/web-pod-${revision}/web-pod.yaml`), podText({ labels: { revision } }))
}
mkdirSync(at('manifests'))
writeFileSync(at('manifests/web-pod.yaml'), podText({ labels: { revision: '7' } }))
await recordLastKnownGood(places, 7, new DurableCalls())
writeFileSync(at('web.yaml'), podText())
const pair = new Pair(t, memory)
await pair.startWitness()

const config = ['--config', at('holdfast.yaml')]
const unused = ['--force', '--state-directory', at('none'), '--pod-manifest-dir', at('none')]
const pod = ['--resource-dir', at('resources')]

const claims = {
  agent: { like: 'sync' },
  sync: { args: ['sync', ...config], path: configured('disk/web'), refuses: 'flag' },
  replace: { args: ['replace', at('certs'), '--from', at('from')], path: at('certs'), refuses: 'flag' },
  write: { args: ['write', at('file')], input: 'new', path: at('file'), refuses: 'flag' },
  verify: { claims: 'nothing' },
  status: { claims: 'nothing' },
  diff: { claims: 'nothing' },
  history: { claims: 'nothing' },
  rollback: {
    args: ['rollback', configured('disk/web'), '--to', '1', ...config],
    path: configured('disk/web'),
    refuses: 'configuration',
  },
  reload: { claims: 'nothing' },
  adopt: {
    args: ['adopt', configured('disk/taken'), '--config', at('adopt-holdfast.yaml')],
    path: configured('disk/taken'),
    refuses: 'configuration',
  },
  hold: { args: ['hold', at('held')], path: at('held'), refuses: 'flag' },
  release: { args: ['release', at('released')], path: at('released'), refuses: 'flag' },
  remove: { args: ['remove', at('gone'), ...unused], path: at('gone'), refuses: 'flag' },
  check: { file: 'test/check/file-systems.test.ts', words: '^tmpfs: durability is not proven' },
  torture: { runs: pair.torture(), path: join(pair.disk, 'holdfast-torture-') },
  witness: { file: import.meta.filename, words: 'pair.witness' },
  install: {
    args: ['install', at('web.yaml'), '--pod-manifest-dir', at('manifests')],
    path: at('manifests/web.yaml'),
    refuses: 'flag',
  },
  prune: {
    args: ['prune', '--keep', '1', ...pod, '--static-pod-name', 'web-pod', '--pod-manifest-dir', at('manifests')],
    path: at('resources'),
    refuses: 'flag',
  },
  monitor: {
    args: [
      'monitor',
      '--ready-for=0s',
      '--revision=7',
      '--target-name=web',
      ...pod,
      '--manifests-dir',
      at('manifests'),
      '--ready-exec=true',
    ],
    path: at('resources'),
    refuses: 'never',
  },
  rollout: { file: 'test/cli/commands/rollout.test.ts', words: 'unproven: true' },
  fleet: { claims: 'nothing' },
  rbac: { claims: 'nothing' },
  schema: { claims: 'nothing' },
  completion: { claims: 'nothing' },
} as const satisfies Record<keyof typeof commands, Claim>

/** Every file, and every name that is no lock. */
const everything = (): string[] =>
  readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => !name.endsWith('.lock'))
    .sort()

for (const [name, claim] of Object.entries<Claim>(claims)) {
  if ('claims' in claim || 'like' in claim) continue
  await t.test(name, async (t) => {
    if ('file' in claim) return void t.match(readFileSync(claim.file, 'utf8'), claim.words)
    if ('runs' in claim) {
      const running = new Running(...claim.runs)
      await until('it warns', () => running.written.stderr.includes('durability is not proven'))
      t.match((await running.end()).stderr, claim.path)
      return
    }
    const { args, input = '', path, refuses } = claim
    if (refuses !== 'never') {
      const before = everything()
      const asked =
        refuses === 'flag'
          ? [...args, '--require-proven']
          : args.map((arg) => arg.replace('holdfast.yaml', 'strict.yaml'))
      const refused = await runInProcess(asked, { input })
      t.match(refused, { code: 1 })
      t.match(refused.stdout + refused.stderr, /is on tmpfs, where durability is not proven/)
      t.same(everything(), before)
    }
    const done = await runInProcess([...args, '-o', 'json'], { input })
    t.match(done, { code: 0, stderr: warning(path), stdout: '"unproven": true' })
  })
}

t.match(pair.witness?.written.stderr, warning(pair.state), 'the witness warns of its own file')

await t.test('exchange() and syncPath() refuse on request, and change nothing', async (t) => {
  for (const name of ['one', 'two']) await replaceFile(at(name), name)
  const refusal = { code: 'ENOTSUP', published: false, reason: 'TargetUnfit', message: /durability is not proven/ }
  await t.rejects(exchange(at('one'), at('two'), { requireProven: true }), refusal)
  await t.rejects(syncPath(at('one'), { requireProven: true }), refusal)
  t.equal(readFileSync(at('one'), 'utf8'), 'one')
  await exchange(at('one'), at('two'))
  await syncPath(at('one'))
  t.equal(readFileSync(at('one'), 'utf8'), 'two')
})
