import { objectName } from '../../src/message-text.js'
import { hash } from 'node:crypto'
import { Readable } from 'node:stream'
import t from 'tap'
import { parseConfiguration, readConfiguration } from '../../src/config/parse.js'
import { ConfigurationError } from '../../src/config/problem.js'
import { referencesOf } from '../../src/config/references.js'
import { apply, sound } from './broken-configuration.js'
import { brokenConfigurations } from './broken-configurations.js'
import { file, problemsOf } from './problems-of.js'

/** What a directory has that the file says nothing of. */
const byDefault = {
  publish: 'exchange',
  adopt: false,
  mode: 0o755,
  fileMode: 0o600,
  owner: undefined,
  attributes: 'set',
  onMissing: 'keep',
  onDrop: 'keep',
  retire: 'immediately',
  retireTimeout: 3_600_000,
  history: { keep: 0, maxAge: null },
  minInterval: 1_000,
  hookInterval: 10_000,
  limits: { keys: 4_096, files: 16_384, bytes: 67_108_864 },
  validate: [],
}

await t.test('a sound configuration gets absolute paths, defaults and durations', async (t) => {
  const configuration = await parseConfiguration(sound, file)
  t.same(configuration, {
    file,
    digest: `sha256:${hash('sha256', sound)}`,
    stateDirectory: '/var/lib/holdfast',
    requireProven: false,
    requireTrusted: false,
    driftInterval: 600_000,
    operationTimeout: 120_000,
    reload: 'signal',
    report: false,
    source: { type: 'kubernetes', kubeconfig: '/configurations/kubeconfig', watch: 'objects', qps: 20, burst: 30 },
    server: { host: '127.0.0.1', port: 10808, hosts: [] },
    directories: [
      {
        path: '/srv/certs',
        place: 'directories[0]',
        ...byDefault,
        debounce: { quiet: 100, atMost: 5_000 },
        contents: [
          {
            type: 'object',
            place: 'directories[0].contents[0]',
            reference: { kind: 'Secret', namespace: 'kube-system', name: 'serving-cert' },
            into: 'secrets/serving-cert',
            optional: false,
            items: undefined,
          },
          {
            type: 'object',
            place: 'directories[0].contents[1]',
            reference: { kind: 'ConfigMap', namespace: 'kube-system', name: 'ca-bundle' },
            into: '',
            optional: false,
            items: [{ key: 'ca.crt', path: 'ca.crt', mode: undefined }],
          },
          {
            type: 'combine',
            place: 'directories[0].contents[2]',
            path: 'server.pem',
            from: [
              {
                reference: { kind: 'Secret', namespace: 'kube-system', name: 'serving-cert' },
                key: 'tls.key',
              },
            ],
            mode: undefined,
            optional: false,
          },
        ],
        beforePublish: [],
        afterPublish: [
          {
            type: 'signal',
            key: '3d915afeb928bd3406fe7ece674381b3',
            place: 'directories[0].afterPublish[0]',
            name: 'signal SIGHUP /run/x.pid',
            signal: 'SIGHUP',
            pidFile: '/run/x.pid',
            timeout: 10_000,
            retries: 3,
            jitter: 0,
          },
        ],
      },
      {
        path: '/configurations/second',
        place: 'directories[1]',
        ...byDefault,
        debounce: { quiet: 0, atMost: 0 },
        contents: [
          {
            type: 'object',
            place: 'directories[1].contents[0]',
            reference: { kind: 'Secret', namespace: 'kube-system', name: 'other' },
            into: '',
            optional: false,
            items: undefined,
          },
        ],
        beforePublish: [],
        afterPublish: [],
      },
    ],
  })
  const [first] = configuration.directories
  t.same(first && referencesOf(first).map(objectName), [
    'Secret kube-system/serving-cert',
    'ConfigMap kube-system/ca-bundle',
  ])
})

await t.test('what may change together waits for it: several objects, and what a selector matches', async (t) => {
  const debounceOf = async (contents: string, fields = '') => {
    const changed = sound
      .replace('contents: [{ secret: other }]', `contents: ${contents}\n    ${fields}`)
      .replace('kubernetes: { ', 'kubernetes: { watch: namespaces, ')
    return (await parseConfiguration(changed, file)).directories[1]?.debounce
  }
  const waits = { quiet: 100, atMost: 5_000 }
  t.same(await debounceOf('[{ secret: a }, { secret: b, into: b }]'), waits)
  t.same(await debounceOf('[{ secret: a }, { secret: a, into: b }]'), { quiet: 0, atMost: 0 }, 'the same one twice')
  t.same(await debounceOf('[{ secrets: { selector: x=y, into: "{name}" } }]'), waits)
  t.same(await debounceOf('[{ combine: x, from: [{ secret: a, key: k }, { configMap: a, key: k }] }]'), waits)
  t.same(await debounceOf('[{ secret: a }]', 'debounce: { atMost: 1s }'), { quiet: 100, atMost: 1_000 })
  t.same(await debounceOf('[{ secret: a }, { secret: b, into: b }]', 'debounce: { quiet: 0s }'), {
    quiet: 0,
    atMost: 5_000,
  })
})

await t.test('each mistake gets its message, with its place', async (t) => {
  t.ok(brokenConfigurations.length >= 40)
  for (const configuration of brokenConfigurations) {
    t.ok(configuration.lines.length > 0, `${configuration.mistake}: has an expectation`)
    const expected = configuration.lines.map((line) => `${file}:${line}`).join('\n')
    t.equal(await problemsOf(apply(configuration)), expected, configuration.mistake)
  }
})

await t.test('ConfigurationError lists its problems as data, too', async (t) => {
  const error: unknown = await parseConfiguration(sound.replace('"0755"', '0755'), file).catch(
    (caught: unknown) => caught,
  )
  t.ok(error instanceof ConfigurationError)
  t.same(error instanceof ConfigurationError && error.problems, [
    {
      file,
      line: 8,
      column: 11,
      place: 'directories[0].mode',
      message: '0755 is a number (755 in YAML 1.2)',
      suggestion: 'write it as a string, "0755"',
    },
  ])
})

await t.test('the configuration accepts anchors, modes, names and other sound forms', async (t) => {
  const accepted: [string, string, string][] = [
    ['anchors and aliases', 'mode: "0755"', 'mode: &mode "0755"\n    fileMode: "0644"'],
    ['modes without a leading zero', '"0755"', '"750"'],
    ['set-group-ID and sticky directories', '"0755"', '"3770"'],
    ['an explicit string', '"0755"', '!!str 0755'],
    ['into "."', 'into: secrets/serving-cert', 'into: .'],
    ['another namespace', 'secret: serving-cert\n', 'secret: other/serving-cert\n'],
    ['names with dots', 'secret: other', 'secret: a.b-c.d'],
    ['no hooks, in so many words', '- signal: { name: SIGHUP, pidFile: /run/x.pid }', '[]'],
    ['no validation, in so many words', 'mode: "0755"', 'validate: []'],
    ['bundles', 'mode: "0755"', 'validate: [bundle: ca.crt, certificates, { bundle: other.crt }]'],
    ['a document mark', 'apiVersion', '---\napiVersion'],
    ['YAML 1.2 by its directive', 'apiVersion', '%YAML 1.2\n---\napiVersion'],
    ['a target that begins like another', './second', '/srv/certs-2'],
    ['two objects with every key in one directory', 'secret: other', 'secret: a }, { configMap: a'],
    [
      'two keys of one object',
      'secret: other',
      'secret: a, items: [{ key: k, path: x }] }, { secret: a, items: [{ key: l, path: y }]',
    ],
    ['port 0', '10808', '0'],
    ['a host name', '127.0.0.1:10808', 'localhost:10808'],
    ["a key that is an object's own word", 'key: ca.crt', 'key: __proto__'],
  ]
  for (const [what, was, is] of accepted) {
    t.ok(sound.includes(was), what)
    t.equal(await problemsOf(sound.replace(was, is)), 'none', what)
  }
  const bundles = sound.replace(
    'mode: "0755"',
    'validate: [bundle: ca.crt, certificates, certificates, { bundle: ca.crt }]',
  )
  const [first] = (await parseConfiguration(bundles, file)).directories
  t.same(first?.validate, [{ bundle: 'ca.crt' }, 'certificates'], 'each of them once')
  const json = JSON.stringify({
    apiVersion: 'holdfast.dev/v1alpha1',
    kind: 'AgentConfiguration',
    source: { files: { path: 'objects' } },
    directories: [{ path: 'out', contents: [{ secret: 'a/b' }] }],
    server: { address: '[::1]:0', hosts: ['metrics.example'] },
  })
  const configuration = await parseConfiguration(json, file)
  t.same(configuration.source, { type: 'files', path: '/configurations/objects' })
  t.same(configuration.server, { host: '::1', port: 0, hosts: ['metrics.example'] })
  const files = sound.replace('kubernetes: { kubeconfig: ./kubeconfig }', 'files: { path: /o }')
  const { source } = await parseConfiguration(files, file)
  t.same(source, { type: 'files', path: '/o', namespace: 'kube-system' })
})

await t.test('content checks have a name, a time, and one try', async (t) => {
  const checks =
    'beforePublish:\n      - exec: [nginx, -t, -c, "{dir}/x"]\n      - exec: [/bin/nginx, "{dir}"]\n        timeout: 3s\n'
  const text = sound.replace('    afterPublish:', `    ${checks}    afterPublish:`)
  const { directories } = await parseConfiguration(text, file)
  t.match(directories[0]?.beforePublish, [
    { name: 'exec nginx', command: ['nginx', '-t', '-c', '{dir}/x'], timeout: 10_000, retries: 0, jitter: 0 },
    { name: 'exec nginx #2', timeout: 3_000, place: 'directories[0].beforePublish[1]' },
  ])
  const none = await parseConfiguration(
    sound.replace('    afterPublish:', '    beforePublish: []\n    afterPublish:'),
    file,
  )
  t.same(none.directories[0]?.beforePublish, [])
})

await t.test('hooks have names that are unique, stable and free of secrets', async (t) => {
  const hooks = `exec: [/usr/bin/systemctl, reload, canary]
        timeout: 1m0.5s
        retries: 0
      - exec: [/bin/systemctl, reload, b]
      - http: { url: "http://[::1]:9000/canary?token=canary" }
      - http: { url: "https://example.org/canary", method: PUT }
      - signal: { name: USR1, pidFile: /run/y.pid }
      - systemd: { unit: "nginx@a.service" }`
  const was = 'signal: { name: SIGHUP, pidFile: /run/x.pid }'
  const { directories } = await parseConfiguration(sound.replace(was, hooks), file)
  t.same(
    directories[0]?.afterPublish.map(({ name, timeout, retries }) => [name, timeout, retries]),
    [
      ['exec systemctl', 60_500, 0],
      ['exec systemctl #2', 10_000, 3],
      ['http [::1]:9000', 10_000, 3],
      ['http example.org', 10_000, 3],
      ['signal SIGUSR1 /run/y.pid', 10_000, 3],
      ['systemd reload-or-restart nginx@a.service', 10_000, 3],
    ],
  )
})

await t.test('a hook keeps its key in every place of the list; the same hook twice is two', async (t) => {
  const was = 'signal: { name: SIGHUP, pidFile: /run/x.pid }'
  const keysOf = async (...hooks: string[]) => {
    const { directories } = await parseConfiguration(sound.replace(was, hooks.join('\n      - ')), file)
    return directories[0]?.afterPublish.map(({ key }) => key) ?? []
  }
  const one = 'exec: [/bin/sh, -c, canary one]'
  const two = 'exec: [/bin/sh, -c, canary two]'
  const get = 'http: { url: "http://localhost/x", method: GET }'
  const post = 'http: { url: "http://localhost/x" }'
  const all = await keysOf(one, two, get, post, was, was.replace('SIGHUP', 'SIGUSR1'), one)
  t.equal(new Set(all).size, 7, 'no two are the same')
  t.equal(all[6], `${all[0] ?? ''} #2`)
  t.same(await keysOf(two), [all[1]], 'what stood before it does not matter')
  t.same(await keysOf(`${two}\n        timeout: 1s\n        retries: 0`), [all[1]], 'nor does its patience')
  t.notMatch(all.join(), 'canary')
})

await t.test('driftInterval has bounds, and needs a unit', async (t) => {
  const read = (line: string) => parseConfiguration(sound.replace('source:', `${line}\nsource:`), file)
  t.equal((await read('driftInterval: 1m30s')).driftInterval, 90_000)
  await t.rejects(read('driftInterval: 100ms'), { message: /"100ms" is out of range: write 1s to 24h/ })
  await t.rejects(read('driftInterval: 5'), { message: /5 has no unit: write "5s" for seconds/ })
  await t.rejects(read('driftInterval: 0'), { message: /0 has no unit: write 1s to 24h/ })
})

await t.test('operationTimeout has bounds, and needs a unit', async (t) => {
  const read = (line: string) => parseConfiguration(sound.replace('source:', `${line}\nsource:`), file)
  t.equal((await read('operationTimeout: 30s')).operationTimeout, 30_000)
  await t.rejects(read('operationTimeout: 0'), { message: /operationTimeout: 0 has no unit: write 1s to 24h/ })
  await t.rejects(read('operationTimeout: 999ms'), { message: /"999ms" is out of range: write 1s to 24h/ })
})

await t.test('the default namespace comes from the source, or from the caller', async (t) => {
  const bare = sound.replace('  namespace: kube-system\n', '')
  const namespaceOf = async (text: string, options: Parameters<typeof parseConfiguration>[2]) => {
    const { directories } = await parseConfiguration(text, file, options)
    return directories.flatMap((directory) => referencesOf(directory).map(({ namespace }) => namespace))
  }
  t.same(await namespaceOf(bare, { defaultNamespace: 'a' }), ['a', 'a', 'a'])
  t.same(await namespaceOf(sound, { defaultNamespace: 'a' }), Array(3).fill('kube-system'))
  const asked: unknown[] = []
  const resolve = (source: unknown) => {
    asked.push(source)
    return Promise.resolve('from-context')
  }
  t.same(await namespaceOf(bare, { defaultNamespace: resolve }), Array(3).fill('from-context'))
  t.same(asked, [
    { type: 'kubernetes', kubeconfig: '/configurations/kubeconfig', watch: 'objects', qps: 20, burst: 30 },
  ])
  await namespaceOf(sound, { defaultNamespace: resolve })
  t.equal(asked.length, 1, 'it is asked only if a name needs it')
  const none = await problemsOf(bare, { defaultNamespace: () => Promise.resolve(undefined) })
  t.match(none, '"other" has no namespace: write NAMESPACE/other, or set source.namespace')
  const selected = bare
    .replace('./kubeconfig }', './kubeconfig, watch: namespaces }')
    .replace('secret: other', 'secrets: { selector: app }')
  t.same((await namespaceOf(selected, { defaultNamespace: 'a' })).at(-1), 'a')
  t.match(await problemsOf(selected), 'secrets: has no namespace: write namespace: NAME, or set source.namespace')
  t.match(await problemsOf(bare, { defaultNamespace: 'A' }), 'the default namespace "A" is not a namespace')
  await t.rejects(parseConfiguration(bare, file, { defaultNamespace: () => Promise.reject(new Error('kubeconfig')) }), {
    message: 'kubeconfig',
  })
})

await t.test('the highest owner is accepted, and the largest configuration is read, and no more', async (t) => {
  const owned = (id: number) => sound.replace('mode: "0755"', `owner: "${id}:${id}"`)
  const { directories } = await parseConfiguration(owned(2 ** 32 - 2), file)
  t.strictSame(directories[0]?.owner, { uid: 2 ** 32 - 2, gid: 2 ** 32 - 2 })
  await t.rejects(parseConfiguration(owned(2 ** 32 - 1), file), { message: /out of range/ })
  const padded = (bytes: number) => [Buffer.from(sound), Buffer.alloc(bytes - sound.length, '#')]
  const largest = 4 * 1024 * 1024
  await t.rejects(readConfiguration(Readable.from(padded(largest)), file), { message: /holds 4194304 characters/ })
  await t.rejects(readConfiguration(Readable.from(padded(largest + 1)), file), { message: /larger than 4194304 bytes/ })
})
