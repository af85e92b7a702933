/** Each command once as its users start it: a process, its arguments, its streams, its exit code. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { commands } from '../../src/cli/program.js'
import { holdfastProcess, Node, type Ended } from './holdfast.js'

const pod = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'demo' },
  spec: { containers: [{ name: 'web', image: 'registry.example/web:1' }] },
})

await t.test('every command runs in a separate process', async (t) => {
  const node = new Node(t, [{ path: './certs', contents: [{ secret: 'serving-cert' }] }])
  node.put('Secret', 'serving-cert', { 'tls.crt': 'x' })
  const [manifest, manifests, revisions] = [node.path('web.yaml'), node.path('manifests'), node.path('revisions')]
  writeFileSync(manifest, pod)
  mkdirSync(manifests)
  mkdirSync(node.path('content'))
  writeFileSync(join(node.path('content'), 'file'), 'content')
  const config = ['--config', node.configuration]
  const places = ['--resource-dir', revisions, '--pod-manifest-dir', manifests]
  const runs: Record<Exclude<keyof typeof commands, 'agent'>, [string[], string | undefined, object]> = {
    check: [config, undefined, { code: 0, stdout: /this node is fit/ }],
    sync: [config, undefined, { code: 0, stdout: /^created {2}\S+certs {2}sha256:/ }],
    verify: [config, undefined, { code: 0, stdout: /certs +ok/ }],
    status: [config, undefined, { code: 0, stdout: /certs +True/ }],
    diff: [
      [node.path('certs'), ...config],
      undefined,
      { code: 0, stdout: /certs: no difference; 2 entries are the same/ },
    ],
    history: [[node.path('certs')], undefined, { code: 0, stdout: /^SEQUENCE.*\n1 .* published +present +sha256:/ }],
    rollback: [[node.path('certs')], undefined, { code: 1, stderr: /no earlier content of .*certs is kept/ }],
    fleet: [['wait'], undefined, { code: 2, stderr: /which object\?/ }],
    torture: [[node.path('certs')], undefined, { code: 2, stderr: /without a witness there is no verdict/ }],
    witness: [[], undefined, { code: 2, stderr: /^error: --state FILE is missing/ }],
    reload: [config, undefined, { code: 1, stderr: /no agent has written|runs no more/ }],
    hold: [[node.path('certs'), '--for', '1h'], undefined, { code: 0, stdout: /^held \S+certs until 20/ }],
    release: [[node.path('certs')], undefined, { code: 0, stdout: /^released \S+certs$/m }],
    adopt: [[node.path('certs'), ...config], undefined, { code: 0, stdout: /certs is holdfast's already/ }],
    rbac: [config, undefined, { code: 0, stdout: /holdfast asks no API server/ }],
    schema: [[], undefined, { code: 0, stdout: /json-schema.org\/draft-07.*"AgentConfiguration"/s }],
    completion: [['bash'], undefined, { code: 0, stdout: /complete -F _holdfast holdfast/ }],
    replace: [
      [node.path('target'), '--from', node.path('content'), '-o', 'json'],
      undefined,
      { code: 0, stdout: /"outcome": "created"/ },
    ],
    write: [[node.path('file')], 'standard input', { code: 0, stdout: /^created .*file sha256:/ }],
    remove: [[node.path('target'), '--force'], undefined, { code: 0, stdout: /^removed \S+target$/m }],
    install: [
      [manifest, ...places, '--resources', node.path('content'), '--revision', '1'],
      undefined,
      { code: 0, stdout: /web-pod\.yaml|web\.yaml/ },
    ],
    monitor: [
      ['--revision=1', '--target-name=web', `--resource-dir=${revisions}`, `--manifests-dir=${manifests}`],
      undefined,
      { code: 2, stdout: '', stderr: /^error: name at least one check of readiness/ },
    ],
    rollout: [
      ['--resume', '--pod-manifest-dir', manifests],
      undefined,
      { code: 1, stdout: /^no rollout was ever begun in \S+manifests: is this/ },
    ],
    prune: [
      [...places, '--static-pod-name', 'web', '--keep', '1', '--dry-run'],
      undefined,
      { code: 0, stdout: /web-1/ },
    ],
  }
  for (const [command, [args, input, expected]] of Object.entries(runs)) {
    const ended: Ended = await holdfastProcess([command, ...args], input === undefined ? {} : { input })
    t.match(ended, { ...expected, signal: null }, `${command}: ${ended.stderr}`)
  }
  t.equal(readFileSync(node.path('file'), 'utf8'), 'standard input')
})
