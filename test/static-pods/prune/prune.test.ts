import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { silent, type Log } from '../../../src/log.js'
import { DurableCalls } from '../../../src/durable/index.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { manifestDirectoryOf } from '../../../src/static-pods/prune/revisions-in-use.js'
import { prune } from '../../../src/static-pods/prune/prune.js'
import { failure, intercepted, Unproven } from '../../durable/intercepted.js'
import { run } from '../command.js'
import { NodeDisk, podText } from '../pods.js'
import { requestOf, visible } from './prune-request.js'

const { signal } = new AbortController()

await t.test('prune removes revisions up to its limit, but neither protected ones nor those in use', async (t) => {
  const node = new NodeDisk(t)
  for (const revision of [1, 2, 3, 4, 5, 6, 7, 10]) node.makeRevision(revision)
  const alike = [
    'web-pod',
    'web-pod-',
    'web-pod-x',
    'web-pod-02',
    'web-pod-3-old',
    'web-podium-3',
    'web-pod-9999999999',
    'other-pod-1',
  ]
  for (const name of alike) mkdirSync(join(node.resources, name))
  writeFileSync(join(node.resources, 'web-pod-8'), 'a file')
  symlinkSync('/etc', join(node.resources, 'web-pod-9'))
  symlinkSync(join(node.revision(2), 'web-pod.yaml'), join(node.resources, 'web-last-known-good'))
  node.makeManifest(podText({ labels: { revision: '5' } }))
  node.makeManifest(
    podText({ name: 'helper' }, { volumes: [{ name: 'v', hostPath: { path: `${node.revision(4)}/` } }] }),
    'helper.yaml',
  )
  const args = [
    'prune',
    '--max-eligible-revision=7',
    '--protected-revisions=1',
    '--protected-revisions=3',
    `--resource-dir=${node.resources}`,
    '--static-pod-name=web-pod',
    '-v=4',
    '--cert-dir=web-certs',
  ]
  const dry = await run([...args, '--dry-run'])
  t.equal(dry.code, 0, dry.stderr)
  t.match(dry.stdout, /would be removed .*web-pod-7\nwould be removed .*web-pod-6\n/)
  t.match(dry.stdout, /kept .*web-pod-4 +named by .*helper\.yaml/)
  t.ok(existsSync(node.revision(6)))

  const { code, stdout, stderr } = await run([...args, '-o', 'json'])
  t.equal(code, 0, stderr)
  const { revisions } = JSON.parse(stdout) as {
    revisions: { revision: number; outcome: string; why?: string }[]
  }
  t.same(
    revisions.map(({ revision, outcome, why }) => [revision, outcome, why?.replace(node.root, '')]),
    [
      [10, 'kept', 'newer than 7'],
      [7, 'removed', undefined],
      [6, 'removed', undefined],
      [5, 'kept', 'named by /manifests/web-pod.yaml'],
      [4, 'kept', 'named by /manifests/helper.yaml'],
      [3, 'kept', 'protected'],
      [2, 'kept', 'named by /static-pod-resources/web-last-known-good'],
      [1, 'kept', 'protected'],
    ],
  )
  const expected = [1, 2, 3, 4, 5, 10].map((revision) => `web-pod-${revision}`)
  t.same(visible(node.resources), [...expected, ...alike, 'web-last-known-good', 'web-pod-8', 'web-pod-9'].sort())
  t.ok(existsSync('/etc/passwd'), 'links are not followed')
})

await t.test('prune removes nothing beside a record to which others may write', async (t) => {
  const node = new NodeDisk(t)
  for (const revision of [1, 2, 3]) node.makeRevision(revision)
  const record = join(node.resources, namesFor('web-pod-2').record(1))
  writeFileSync(record, '')
  chmodSync(record, 0o606)
  const before = readdirSync(node.resources, { recursive: true }).sort()
  const refused = prune(requestOf(node, { keep: 1 }), new DurableCalls(), silent, signal)
  await t.rejects(refused, { reason: 'TargetUnfit', path: record, message: /nothing was changed/ })
  t.same(
    readdirSync(node.resources, { recursive: true })
      .filter((name) => !String(name).endsWith('.lock'))
      .sort(),
    before,
  )
})

await t.test('prune --keep keeps the newest revisions, without another flag', async (t) => {
  const node = new NodeDisk(t)
  for (const revision of [3, 11, 9, 10]) node.makeRevision(revision)
  const lines = await prune(requestOf(node, { keep: 2 }), new DurableCalls(), silent, signal)
  t.same(
    lines.map(({ revision, outcome }) => [revision, outcome]),
    [
      [11, 'kept'],
      [10, 'kept'],
      [9, 'removed'],
      [3, 'removed'],
    ],
  )
  t.same(visible(node.resources), ['web-pod-10', 'web-pod-11'])
})

await t.test('prune marks a removal without proven durability, or refuses it', async (t) => {
  const node = new NodeDisk(t)
  for (const revision of [1, 2]) node.makeRevision(revision)
  const warnings: string[] = []
  const log: Log = { ...silent, warn: (_, message) => warnings.push(message) }
  const pruned = (more: Parameters<typeof requestOf>[1]) =>
    prune(requestOf(node, more), new DurableCalls(new Unproven()), log, signal)
  t.same(
    (await pruned({ keep: 2 })).map(({ outcome, unproven }) => [outcome, unproven]),
    [
      ['kept', undefined],
      ['kept', undefined],
    ],
  )
  t.same(warnings, [], 'nothing went')
  const refused = await pruned({ keep: 1, requireProven: true }).catch((error: unknown) => error)
  t.match(refused, { code: 'ENOTSUP', message: /durability is not proven/ })
  t.same(visible(node.resources), ['web-pod-1', 'web-pod-2'])
  t.same(
    (await pruned({ keep: 1 })).map(({ outcome, unproven }) => [outcome, unproven]),
    [
      ['kept', undefined],
      ['removed', true],
    ],
  )
  t.equal(warnings.length, 1)
  t.match(warnings[0], node.resources)
})

await t.test('prune removes nothing where it cannot tell which revisions are in use', async (t) => {
  const node = new NodeDisk(t)
  node.makeRevision(1)
  writeFileSync(node.manifests, 'not a directory')
  const { code, stderr } = await run([
    'prune',
    '--keep=0',
    `--resource-dir=${node.resources}`,
    '--static-pod-name=web-pod',
  ])
  t.equal(code, 1)
  t.match(stderr, /manifests is not a directory; holdfast left \S+manifests as it was; .*; nothing was removed/)
  t.ok(existsSync(node.revision(1)))
})

await t.test('prune says where there is nothing to remove', async (t) => {
  const node = new NodeDisk(t)
  node.makeManifest(podText())
  const args = ['prune', '--keep=1', '--static-pod-name=web-pod', `--pod-manifest-dir=${node.manifests}`]
  const empty = await run([...args, `--resource-dir=${node.root}`, '-o', 'json'])
  t.match(empty, { code: 0, stderr: '' })
  t.same(JSON.parse(empty.stdout), { revisions: [] })
  const text = await run([...args, `--resource-dir=${node.root}`])
  t.match(text, { code: 0, stdout: `${node.root} holds no revision of web-pod\n` })
})

await t.test('prune fails where the resource directory is missing, or is none', async (t) => {
  const node = new NodeDisk(t)
  node.makeManifest(podText())
  const args = ['prune', '--keep=1', '--static-pod-name=web-pod', `--pod-manifest-dir=${node.manifests}`]
  for (const more of [[], ['--dry-run']]) {
    const absent = await run([...args, `--resource-dir=${node.resources}`, ...more])
    t.match(absent, {
      code: 1,
      stdout: '',
      stderr: /static-pod-resources does not exist; nothing was removed/,
    })
    t.notOk(existsSync(node.resources), 'nothing is made')
  }
  writeFileSync(node.resources, 'a file')
  const file = await run([...args, `--resource-dir=${node.resources}`, '-o', 'json'])
  t.equal(file.code, 1)
  const { error } = JSON.parse(file.stdout) as { readonly error: { readonly message: string } }
  t.match(error.message, /resources is not a directory; holdfast left \S+resources as it was; .*; nothing was removed/)
})

await t.test('prune reads the named manifests, else those beside, else the usual ones', async (t) => {
  const node = new NodeDisk(t)
  node.makeRevision(1)
  const warnings: string[] = []
  const log: Log = { ...silent, warn: (_, message) => warnings.push(message) }
  const usual = join(node.root, 'kubernetes/manifests')
  const choose = (named?: string) => manifestDirectoryOf(named, node.resources, log, usual)
  t.equal(await choose(), node.manifests)
  t.matchOnly(warnings, [/no revision counts as live; name the directory with --pod-manifest-dir/])
  mkdirSync(usual, { recursive: true })
  t.equal(await choose(), usual)
  mkdirSync(node.manifests)
  t.equal(await choose(), node.manifests)
  t.equal(await choose(usual), usual)
  t.equal(warnings.length, 1)
  const args = ['prune', '--keep=0', `--resource-dir=${node.resources}`, '--static-pod-name=web-pod']
  const mistyped = await run([...args, `--pod-manifest-dir=${node.root}/manifest`])
  t.match(mistyped, {
    code: 1,
    stderr: /manifest does not exist, so it is unknown which revisions are in use/,
  })
  t.ok(existsSync(node.revision(1)), 'a mistyped path removes nothing')
})

await t.test('prune reports a revision as failed that is out of sight, but not off the disk', async (t) => {
  const node = new NodeDisk(t)
  for (const revision of [1, 2]) node.makeRevision(revision)
  let stuck = ''
  const { fs } = intercepted((call, args) => {
    const name = String(args[1])
    if (call !== 'removeDirectory' || !name.startsWith('.holdfast-') || ![name, ''].includes(stuck)) return
    stuck = name
    throw failure('EPERM', call)
  })
  const lines = await prune(requestOf(node), new DurableCalls(fs), silent, signal)
  t.same(visible(node.resources), [])
  t.same(lines.map(({ outcome }) => outcome).sort(), ['failed', 'removed'])
  const why = lines.find(({ outcome }) => outcome === 'failed')?.why ?? ''
  t.match(why, /no longer visible as a revision, but files are left in .*\.holdfast-.*EPERM.*; the next run retries/)
  await prune(requestOf(node), new DurableCalls(), silent, signal)
  t.same(
    readdirSync(node.resources).filter((name) => !name.endsWith('.lock')),
    [],
  )
})

await t.test('a manifest with escapes protects the revisions that it names', async (t) => {
  const node = new NodeDisk(t)
  for (const revision of [1, 2, 3]) node.makeRevision(revision)
  node.makeManifest(podText({ labels: { revision: '2' } }))
  node.makeManifest(podText({ annotations: { at: 'PATH' } }).replace('PATH', '\\u002fweb-pod\\u002d3/x'), 'b.yaml')
  await prune(requestOf(node), new DurableCalls(), silent, signal)
  t.same(visible(node.resources), ['web-pod-2', 'web-pod-3'])
})

for (const [name, form] of Object.entries({
  // With a comment before it: what begins with a brace is JSON for kubelet, which ends with its document.
  'two documents': (text: string) =>
    `# web\n${text}\n---\n{"apiVersion":"v1","kind":"Pod","metadata":{"name":"other"}}\n`,
  'a field that stands twice': (text: string) => text.replace('"kind":"Pod"', '"kind":"Pod","kind":"Pod"'),
  'UTF-16': (text: string) => Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(text, 'utf16le')]),
})) {
  await t.test(`a live manifest of ${name} protects the revision of its first pod`, async (t) => {
    const node = new NodeDisk(t)
    for (const revision of [1, 2, 3]) node.makeRevision(revision)
    node.makeManifest(form(podText({ labels: { revision: '2' } })))
    await prune(requestOf(node), new DurableCalls(), silent, signal)
    t.same(visible(node.resources), ['web-pod-2'])
  })
}

await t.test('prune removes nothing beside a file that is unreadable as a pod, and exits with 1', async (t) => {
  for (const [name, text] of [
    ['web-pod.yaml', '{'],
    ['web-pod.yaml', ''],
    ['web-pod.yaml', `{"metadata": {"x": "/web-pod-2`],
    ['web-pod.yaml', '{"kind":"ConfigMap","apiVersion":"v1"}'],
    ['other.yaml', '{'],
  ] as const) {
    const node = new NodeDisk(t)
    for (const revision of [1, 2, 3]) node.makeRevision(revision)
    node.makeManifest(text, name)
    const { code, stdout, stderr } = await run([
      ...['prune', '--max-eligible-revision=3', `--resource-dir=${node.resources}`, '--static-pod-name=web-pod'],
    ])
    t.equal(code, 1, 'a timer that runs it fails, so that somebody sees it')
    t.match(stdout, /failed .*web-pod-3 +.*is not readable as a pod/, name)
    t.match(stderr, new RegExp(`${name}.*is not readable as a pod`))
    t.same(visible(node.resources), ['web-pod-1', 'web-pod-2', 'web-pod-3'], `${name}: ${text}`)
  }
})

await t.test('prune refuses the numbers that library-go refuses, with the reason', async (t) => {
  const node = new NodeDisk(t)
  node.makeRevision(1)
  const place = ['prune', `--resource-dir=${node.resources}`, '--static-pod-name=web-pod']
  const cases: [string[], RegExp][] = [
    [['--max-eligible-revision=7', '--protected-revisions='], /--protected-revisions.*empty/],
    [['--max-eligible-revision=7', '--protected-revisions=1,,2'], /--protected-revisions.*empty/],
    [['--max-eligible-revision=0'], /--max-eligible-revision.*1/],
    [['--max-eligible-revision=006'], /leading zero/],
    [['--max-eligible-revision=7', '--protected-revisions=5,006'], /leading zero/],
  ]
  for (const [flags, message] of cases) {
    const { code, stderr } = await run([...place, ...flags])
    t.equal(code, 2, flags.join(' '))
    t.match(stderr, message)
  }
  t.ok(existsSync(node.revision(1)), 'nothing was removed')
})
