import { mkdirSync, readFileSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readRolloutTree } from '../../../src/static-pods/rollout/rollout-tree.js'
import { run } from '../command.js'
import { contents, modeOf, NodeDisk, podText } from '../pods.js'

const canary = 'CANARY-9d3e'

await t.test('install puts a single manifest in place byte for byte', async (t) => {
  const node = new NodeDisk(t)
  const source = join(node.root, 'web.yaml')
  const text =
    '# a comment\napiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: a, image: b, env: [{name: NODE_NAME, value: REVISION}]}]\n'
  writeFileSync(source, text)
  const first = await run(['install', source, '--pod-manifest-dir', node.manifests], { NODE_NAME: 'n1' })
  t.equal(first.code, 0, first.stderr)
  const live = join(node.manifests, 'web.yaml')
  t.equal(readFileSync(live, 'utf8'), text)
  t.equal(modeOf(live), '600')
  t.match(first.stdout, new RegExp(`^created +${live} +sha256:`))
  const { ino } = statSync(live)
  const again = await run(['install', source, '--pod-manifest-dir', node.manifests, '-o', 'json'])
  t.match(JSON.parse(again.stdout), { manifests: [{ outcome: 'unchanged', path: live }] })
  t.equal(statSync(live).ino, ino)
  t.same(
    readdirSync(node.manifests).filter((name) => !name.startsWith('.')),
    ['web.yaml'],
    'nothing else that kubelet would read',
  )
})

await t.test('install and rollout read a volume as kubelet mounts it: the files behind its links', async (t) => {
  const node = new NodeDisk(t)
  const volume = join(node.root, 'volume')
  mkdirSync(join(volume, '..2026_11_26', 'secrets'), { recursive: true })
  writeFileSync(join(volume, '..2026_11_26', 'secrets', 'tls.key'), canary)
  symlinkSync('..2026_11_26', join(volume, '..data'))
  symlinkSync('..data/secrets', join(volume, 'secrets'))
  const source = join(node.root, 'web-pod.yaml')
  writeFileSync(source, podText())
  const { code, stderr } = await run([
    ...['install', source, '--pod-manifest-dir', node.manifests, '--resource-dir', node.resources],
    ...['--resources', volume, '--revision', '7', '--node-name', 'n1'],
  ])
  t.equal(code, 0, stderr)
  t.same(contents(node.revision(7))['secrets/tls.key'], canary)
  t.same(Object.keys((await readRolloutTree(volume, join(node.root, 'live'), false)).files), ['secrets/tls.key'])
})

await t.test('install makes a revision from local files: layout, modes, words, bytes', async (t) => {
  const node = new NodeDisk(t)
  const resources = join(node.root, 'resources')
  mkdirSync(join(resources, 'secrets', 'tls'), { recursive: true })
  mkdirSync(join(resources, 'configmaps', 'empty'), { recursive: true })
  mkdirSync(join(resources, 'configmaps', 'scripts'))
  const binary = Buffer.concat([Buffer.of(0xff, 0xfe, 0x80), Buffer.from('REVISION'), Buffer.of(0xc3, 0x28)])
  writeFileSync(join(resources, 'secrets', 'tls', 'tls.key'), binary)
  writeFileSync(join(resources, 'secrets', 'tls', 'run.sh'), canary)
  writeFileSync(join(resources, 'configmaps', 'scripts', 'run.sh'), 'NODE_NAME NODE_ENVVAR_NAME')
  const source = join(node.root, 'web-pod.yaml')
  writeFileSync(source, podText({ annotations: { dir: `${node.resources}/web-pod-REVISION` } }))
  const args = [
    ...['install', source, '--pod-manifest-dir', node.manifests, '--resource-dir', node.resources],
    ...['--resources', resources, '--revision', '7', '--pod-manifests-lock-file', node.lock],
    ...['--node-name', 'Node-1.Example'],
  ]
  const dry = await run([...args, '--dry-run'])
  t.equal(dry.code, 0, dry.stderr)
  t.match(
    dry.stdout,
    /would be created .*web-pod-7 +sha256:[^]*\+ secrets\/tls\/tls\.key[^]*would be created .*web-pod\.yaml +sha256:/,
  )
  t.same(readdirSync(node.root).sort(), ['resources', 'web-pod.yaml'], 'a dry run writes nothing')

  // Modes are the requested ones, under every umask of the starting process.
  const masked = process.umask(0o077)
  const first = await run(args).finally(() => process.umask(masked))
  t.equal(first.code, 0, first.stderr)
  const made = node.revision(7)
  t.same(
    readFileSync(join(made, 'secrets/tls/tls.key')),
    Buffer.concat([Buffer.of(0xff, 0xfe, 0x80), Buffer.from('7'), Buffer.of(0xc3, 0x28)]),
    'bytes that are no text are kept',
  )
  t.equal(readFileSync(join(made, 'configmaps/scripts/run.sh'), 'utf8'), 'node-1.example node_1_example')
  t.same(readdirSync(join(made, 'configmaps/empty')), [], 'an empty directory is there')
  const modes = [
    '.',
    'secrets',
    'secrets/tls',
    'secrets/tls/tls.key',
    'secrets/tls/run.sh',
    'configmaps/scripts/run.sh',
    'web-pod.yaml',
  ]
  t.same(
    modes.map((path) => modeOf(join(made, path))),
    ['755', '755', '755', '600', '700', '755', '600'],
  )
  t.same([node.resources, node.manifests, node.manifest(), node.lock].map(modeOf), ['755', '755', '600', '600'])
  const live = JSON.parse(readFileSync(node.manifest(), 'utf8')) as { metadata: { labels: object } }
  t.match(live.metadata, { labels: { revision: '7' }, annotations: { dir: made } })
  t.equal(readFileSync(join(made, 'web-pod.yaml'), 'utf8'), readFileSync(node.manifest(), 'utf8'))

  const { ino } = statSync(made)
  const again = await run([...args, '-o', 'json'])
  t.match(JSON.parse(again.stdout), {
    directories: [{ path: made, outcome: 'unchanged' }],
    manifests: [{ outcome: 'unchanged' }],
  })
  t.equal(statSync(made).ino, ino, 'a revision that is equal is left alone')

  const text = readFileSync(source, 'utf8')
  writeFileSync(source, text.replace('"labels":{', '"labels":{"empty":"",'))
  const other = await run(args)
  t.match(other, { code: 1, stderr: /web-pod-7 exists and differs \(other web-pod\.yaml\)/ }, 'nor is it equal to this')
  t.equal(readFileSync(join(made, 'web-pod.yaml'), 'utf8'), readFileSync(node.manifest(), 'utf8'))
  writeFileSync(source, text)

  writeFileSync(join(resources, 'secrets', 'tls', 'tls.key'), canary)
  const refused = await run(args)
  t.equal(refused.code, 1)
  t.match(refused.stderr, /web-pod-7 exists and differs \(other secrets\/tls\/tls\.key\).*names it.*new revision/)
  t.equal(statSync(made).ino, ino, 'one that a live manifest names is not replaced')

  node.makeManifest(podText({ labels: { revision: '6' } }))
  const replaced = await run(args)
  t.equal(replaced.code, 0, replaced.stderr)
  t.equal(readFileSync(join(made, 'secrets/tls/tls.key'), 'utf8'), canary, 'a leftover is replaced')
  for (const { stdout, stderr } of [dry, first, again, other, refused, replaced]) t.notMatch(stdout + stderr, canary)
})

await t.test('install refuses first every manifest that kubelet would refuse, and writes nothing', async (t) => {
  const node = new NodeDisk(t)
  const source = join(node.root, 'web.yaml')
  const cases: [string, string | Buffer, RegExp][] = [
    [
      'another kind',
      '{"apiVersion":"apps/v1","kind":"Deployment"}',
      /kind "Deployment", apiVersion "apps\/v1".*only kind Pod/,
    ],
    ['no YAML', 'a: [1, 2', /web\.yaml: line 1, column \d+: not valid YAML/],
    ['no text', Buffer.of(0xff, 0xfe, 0), /not UTF-8/],
    ['no name', podText({ name: undefined }), /metadata\.name is missing/],
    ['no container', podText({}, { containers: [] }), /spec\.containers is missing/],
    ['no image', podText({}, { containers: [{ name: 'a' }] }), /spec\.containers\[0\]\.image/],
    ['a reference', podText({}, { serviceAccountName: 'x' }), /spec\.serviceAccountName .*ServiceAccounts/],
  ]
  for (const [name, text, message] of cases) {
    writeFileSync(source, text)
    const { code, stderr, stdout } = await run(['install', source, '--pod-manifest-dir', node.manifests])
    t.equal(code, 2, `${name}: exit code`)
    t.match(stderr, message, name)
    t.equal(stdout, '')
  }
  t.same(readdirSync(node.root), ['web.yaml'])
})

await t.test('install reports missing host paths, or refuses them', async (t) => {
  const node = new NodeDisk(t)
  mkdirSync(node.resources)
  writeFileSync(join(node.root, 'file'), '')
  const source = join(node.root, 'web-pod.yaml')
  const paths = [
    { path: '/' },
    { path: join(node.root, 'absent') },
    { path: join(node.root, 'made'), type: 'DirectoryOrCreate' },
    { path: join(node.root, 'file'), type: 'Directory' },
    { path: `${node.resources}/web-pod-REVISION`, type: 'Directory' },
  ]
  writeFileSync(source, podText({}, { volumes: paths.map((hostPath, n) => ({ name: `v${n}`, hostPath })) }))
  const args = [
    'install',
    source,
    '--pod-manifest-dir',
    node.manifests,
    '--resource-dir',
    node.resources,
    '--revision',
    '1',
  ]
  const refused = await run([...args, '--check-host-paths'])
  t.equal(refused.code, 1)
  t.match(refused.stderr, /spec\.volumes\[1\]\.hostPath\.path: .*absent does not exist/)
  t.same(contents(node.resources), {}, 'nothing was written')
  const warned = await run([...args, '--log-format=json'])
  t.equal(warned.code, 0, warned.stderr)
  const warnings = warned.stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { level: string; field?: string })
    .filter(({ field }) => field)
  t.same(
    warnings.map(({ field }) => field),
    ['spec.volumes[1].hostPath.path', 'spec.volumes[3].hostPath.path'],
  )
})

await t.test('install and prune exit with 2 on wrong usage, and name the missing flag', async (t) => {
  const node = new NodeDisk(t)
  const source = join(node.root, 'web.yaml')
  writeFileSync(source, podText())
  symlinkSync(source, join(node.root, 'link.yaml'))
  const place = ['--pod-manifest-dir', node.manifests]
  const cases: [string[], RegExp][] = [
    [['install', source], /--pod-manifest-dir is missing/],
    [['install', source, ...place, '--resources', node.root], /--revision is missing/],
    [['install', source, ...place, '--revision', '1'], /--resource-dir is missing/],
    [['install', source, ...place, '--revision', '01', '--resource-dir', 'x'], /whole number/],
    [['install', source, ...place, '--revision', '2147483648', '--resource-dir', 'x'], /whole number/],
    [['install', source, ...place, '--secrets', 'a'], /--secrets belongs to an installation from the API/],
    [['install', source, ...place, '--timeout-duration', '0'], /--timeout-duration must be more than 0/],
    [['install', source, ...place, '--cert-secrets', 'a'], /--cert-secrets belongs to an installation from the API/],
    [['install', join(node.root, 'none.yaml'), ...place], /none\.yaml does not exist/],
    [['install', node.root, ...place], /is not a regular file/],
    [['install', source, source, ...place], /too many arguments/],
    [['install'], /--revision, .*--pod-manifest-dir, .* are missing; to install from files, name a manifest/],
    [['install', '--revision=1', '--namespace=a'], /--pod, --configmaps, --resource-dir, .* are missing\n/],
    [
      ['install', '--revision=1', '--namespace=a', '--pod=p', '--configmaps=c', '--secrets=../x'],
      /not a name that Kubernetes allows/,
    ],
    [
      ['install', '--revision=1', '--namespace=a', '--pod=p', '--configmaps=c', '--cert-secrets=s'],
      /--cert-dir \(there are objects for it\), --resource-dir, .* are missing/,
    ],
    [
      ['install', '--revision=1', '--namespace=a', '--pod=p', '--configmaps=c', '--resource-dir=r', ...place],
      /--node-name \(or NODE_NAME\) is missing/,
    ],
    [['prune', '--resource-dir', 'x', '--static-pod-name', 'web'], /--max-eligible-revision or --keep/],
    [['prune', '--keep', '1', '--static-pod-name', 'web'], /--resource-dir is missing/],
    [
      ['monitor', '--revision=1', '--target-name=web', '--resource-dir=r', '--manifests-dir=m'],
      /name at least one check of readiness/,
    ],
    [['monitor', '--ready-url=ftp://x'], /http or https/],
    [['monitor', '--ready-exec='], /an empty command always succeeds/],
  ]
  for (const [args, message] of cases) {
    const { code, stderr } = await run(args)
    t.equal(code, 2, args.join(' '))
    t.match(stderr, message)
  }
})
