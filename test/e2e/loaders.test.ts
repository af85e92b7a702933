/** client-go's loader judges the kubeconfigs that holdfast reads, and kubectl's the Secrets and ConfigMaps in files. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { isDeepStrictEqual, promisify } from 'node:util'
import t, { type Test } from 'tap'
import { parseKubeconfig, type Material } from '../../src/kubernetes/credentials/kubeconfig-file.js'
import { resolveContext } from '../../src/kubernetes/credentials/kubeconfig.js'
import { shownTo } from '../../src/kubernetes/credentials/plain-http.js'
import { silent } from '../../src/log.js'
import { scanDirectory } from '../../src/objects/files/directory-scan.js'
import { readObjectFile } from '../../src/objects/files/objects.js'
import { decodeYaml } from '../../src/yaml/decode.js'
import { issue, makeAuthority } from '../kubernetes/connection/certificates.js'
import { base64 } from '../kubernetes/credentials/kubeconfig-text.js'
import { replaying, seed } from '../seed.js'
import { mutated } from '../static-pods/pod/mutated-manifests.js'
import { findProgram } from './assets.js'
import { workingDirectory } from './guard.js'
import { counted } from './kubelet-judge.js'

/** Of each seed. */
const count = Number(process.env.HOLDFAST_MANIFESTS ?? '300')

interface Reading {
  readonly value?: unknown
  readonly error?: string
}

type Text = string | Uint8Array

/** A mode of the judge, holdfast's own reading of one file, and what both are known to say otherwise. */
interface Loader {
  readonly mode: 'kubeconfigs' | 'objects'
  readonly extension: string
  readonly corpus: Readonly<Record<string, Text>>
  /** Names of fields for changed texts. */
  readonly names: readonly string[]
  readonly read: (path: string) => Promise<unknown>
  /** What the judge says, as `read` says it. */
  readonly asRead: (value: unknown) => unknown
  /** holdfast's words where it refuses a text of the corpus: each with the reason above it. */
  readonly stricter: readonly RegExp[]
  /** The judge's words where it refuses, and holdfast takes it. */
  readonly milder: readonly RegExp[]
}

const authority = makeAuthority('authority')
const client = issue(authority, { name: 'node' })
const [ca, certificate, key] = [authority.certificate, client.certificate, client.key].map(base64)

const config = (cluster: string, user: string, context = '{cluster: c, user: u}') => `apiVersion: v1
kind: Config
current-context: main
clusters:
- name: c
  cluster:
    server: https://127.0.0.1:6443
${cluster}
users:
- name: u
  user:
${user}
contexts:
- name: main
  context: ${context}
`

const plain = config(`    certificate-authority-data: ${ca}`, '    token: abc')
const asJson = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Config',
  'current-context': 'main',
  clusters: [{ name: 'c', cluster: { server: 'https://h', 'certificate-authority-data': ca } }],
  users: [{ name: 'u', user: { token: 'abc' } }],
  contexts: [{ name: 'main', context: { cluster: 'c', user: 'u' } }],
})
const utf16 = (text: string) => Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(text, 'utf16le')])
const utf16Big = (text: string) => Buffer.from(utf16(text)).swap16()

const kubeconfigs: Loader = {
  mode: 'kubeconfigs',
  extension: '',
  corpus: {
    plain,
    'a certificate': config('', `    client-certificate-data: ${certificate}\n    client-key-data: ${key}`),
    'files beside it': config('    certificate-authority: pki/ca.crt', '    tokenFile: pki/token'),
    'files and data': config(
      `    certificate-authority: pki/ca.crt\n    certificate-authority-data: ${ca}`,
      '    token: a',
    ),
    'certificate files': config('', '    client-certificate: ./pki/tls.crt\n    client-key: pki/tls.key'),
    'a name and a password': config('    insecure-skip-tls-verify: true', '    username: a\n    password: "8"'),
    'UTF-16': utf16(plain),
    'UTF-16, big end first': utf16Big(plain),
    'a byte order mark': `\ufeff${plain}`,
    JSON: asJson,
    'JSON behind a byte order mark': `\ufeff${asJson}`,
    'JSON with tabs': JSON.stringify(JSON.parse(asJson), undefined, '\t'),
    'JSON in UTF-16': utf16(asJson),
    '!!binary': config('', `    token: !!binary ${base64('abc')}`),
    'no user in the context': config('', '    token: abc', '{cluster: c}'),
    'an unknown user': config('', '    token: abc', '{cluster: c, user: x}'),
    'no cluster in the context': config('', '    token: abc', '{user: u}'),
    'a number in quotes': config('', '    token: "12345"'),
    'a number': config('', '    token: 12345'),
    'a word that is a boolean there': config('', '    token: on'),
    'a date': config('', '    token: 2001-01-01'),
    'a key twice': config('', '    token: a\n    token: b'),
    'anchors and aliases': config('', '    token: &a abc\n    username: ""')
      .replace('name: u\n', 'name: &u u\n')
      .replace('user: u}', 'user: *u}'),
    'a merge': config('', '    <<: {token: abc}'),
    'two documents': `${plain}---\n${plain.replace('abc', 'def')}`,
    'an empty first document': `---\n# nothing\n---\n${plain}`,
    empty: '',
    'a comment': '# nothing\n',
    'a list': '- a\n',
    'another kind': plain.replace('kind: Config', 'kind: Pod'),
    'no kind': plain.replace('kind: Config\n', ''),
    'no version': plain.replace('apiVersion: v1\n', ''),
    'a name twice': plain.replace('contexts:\n', 'contexts:\n- name: main\n  context: {cluster: c, user: u}\n'),
    'an empty user': config('', '    {}'),
    'null fields': config('    tls-server-name: null\n    proxy-url: ~', '    token: abc\n    as: null'),
    'an unknown field': config('    server-name: x', '    token: abc\n    other: [1]'),
    'bytes that are no text': Buffer.from([...Buffer.from(plain), 0xff, 0xfe, 0x0a]),
    'another user': config('', '    token: abc\n    as: jane'),
    'impersonated groups alone': config('', '    token: abc\n    as-groups: [a]'),
    'a key without a certificate': config('', `    client-key-data: ${key}`),
    'a certificate without a key': config('', `    client-certificate-data: ${certificate}`),
    'a token and a name': config('', '    token: abc\n    username: a'),
    'an exec plugin': config(
      '',
      '    exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Never, env: null, args: null}',
    ),
  },
  names: [
    'server',
    'token',
    'user',
    'cluster',
    'name',
    'context',
    'namespace',
    'tls-server-name',
    'as',
    'username',
    'exec',
  ],
  async read(path) {
    const text = decodeYaml(await bytesOf(path))
    if (text === undefined) throw new Error('it is no text')
    const { cluster, user } = shownTo(resolveContext([await parseKubeconfig(text, path)], undefined)).settings
    const [username, ...password] = Buffer.from(user.basic?.slice('Basic '.length) ?? '', 'base64')
      .toString()
      .split(':')
    // Without TLS, both use no trust, either (clientcmd, DirectClientConfig.ClientConfig).
    const isPlain = cluster.server.protocol === 'http:'
    const { certificate, token, impersonation, exec } = user
    return {
      server: cluster.server.href,
      serverName: isPlain ? '' : (cluster.serverName ?? ''),
      insecure: !isPlain && cluster.insecure,
      ...material('ca', isPlain ? undefined : cluster.authority),
      ...material('certificate', certificate?.chain),
      ...material('key', certificate?.key),
      ...(token?.type === 'file' ? { token: '' } : {}),
      ...material('token', token),
      username,
      password: password.join(':'),
      impersonated: impersonation['impersonate-user'] ?? '',
      hasExec: exec !== undefined,
    }
  },
  asRead(value) {
    const found = value as Record<string, unknown>
    // client-go reads a token's file at once.
    return { ...found, server: asDialled(String(found.server)), ...(found.tokenFile !== '' && { token: '' }) }
  },
  stricter: [
    // Two readers may take another one of the two.
    /stands twice/,
    /several documents/,
    // client-go goes on without credentials, and the API server then says 401.
    /there is no user "…"/,
    /client-key is set without client-certificate/,
  ],
  milder: [
    // holdfast reads files at the first connection, and again at each renewal.
    /unable to read|no such file/,
    // The type of a field that the context does not use.
    /cannot unmarshal/,
  ],
}

/** client-go puts a scheme before the server, and drops its query, as it dials (rest/url_utils.go, DefaultServerURL). */
function asDialled(server: string): string {
  const address = server.includes('://') ? server : `http://${server}`
  if (!URL.canParse(address)) return server
  const url = new URL(address)
  url.search = ''
  return url.href
}

function material(name: string, found: Material | undefined): Record<string, string> {
  return {
    [name]: found?.type === 'inline' ? found.text : '',
    [`${name}File`]: found?.type === 'file' ? found.path : '',
  }
}

const secret = (data: string, more = '') => `apiVersion: v1
kind: Secret
metadata:
  name: one
${more}data:
${data}
`

const objects: Loader = {
  mode: 'objects',
  extension: '.yaml',
  corpus: {
    secret: secret(`  a: ${base64('x')}\n  b: ""`),
    'a ConfigMap':
      'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  a: |\n    x:\n    \ty\n  8080: port\nbinaryData: {raw: /w==}\n',
    stringData: secret('  a: YQ==', 'stringData:\n  a: plain\n  b: !!binary aGk=\n'),
    'UTF-16': utf16(secret('  a: YQ==')),
    'a byte order mark': `\ufeff${secret('  a: YQ==')}`,
    'JSON behind a byte order mark':
      '\ufeff{"apiVersion":"v1","kind":"Secret","metadata":{"name":"one"},"data":{"a":"YQ=="}}',
    JSON: '{\n\t"apiVersion":"v1",\n\t"kind":"Secret","metadata":{"name":"one"},"data":{"a":"YQ=="}}',
    'two documents of JSON':
      '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"one"}}\n{"apiVersion":"v1","kind":"Secret","metadata":{"name":"two"}}',
    '!!binary': secret('  a: !!binary WVE9PQ=='),
    'a number': secret('  a: 17'),
    'a number in quotes': secret('  a: "1700"'),
    'a word that is a boolean there': secret('  a: YQ==', 'stringData: {a: on}\n'),
    'an octal number': secret('  a: YQ==', 'stringData: {a: 0o17}\n'),
    'a date': secret('  a: YQ==', 'stringData: {a: 2001-01-01}\n'),
    'a time of day': secret('  a: YQ==', 'stringData: {a: 12:30:45}\n'),
    null: secret('  a: ~\n  b:'),
    'a key twice': secret('  a: YQ==\n  a: Yg=='),
    'anchors and aliases': secret('  a: &a YQ==\n  b: *a'),
    'a merge': secret('  <<: {a: YQ==}\n  b: Yg=='),
    'two documents': `${secret('  a: YQ==')}---\n${secret('  b: YQ==').replace('one', 'two')}`,
    'empty documents': `---\n# nothing\n---\n${secret('  a: YQ==')}...\n---\n`,
    empty: '',
    'a comment': '# nothing\n',
    'a list': '- a\n',
    'a List': `apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: one}\n  data: {a: YQ==}\n- {apiVersion: v1, kind: Pod, metadata: {name: x}}\n`,
    'a SecretList': 'apiVersion: v1\nkind: SecretList\nitems:\n- metadata: {name: one}\n  data: {a: YQ==}\n',
    'an empty kind in a SecretList':
      'apiVersion: v1\nkind: SecretList\nitems:\n- kind: ""\n  apiVersion: ""\n  metadata: {name: one}\n  data: {a: YQ==}\n',
    'an empty kind in a List':
      'apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: "", metadata: {name: one}}\n',
    'a SecretList that holds another kind':
      'apiVersion: v1\nkind: SecretList\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {a: YQ==}}\n',
    'a SecretList that holds another version':
      'apiVersion: v1\nkind: SecretList\nitems:\n- {apiVersion: v2, kind: Secret, metadata: {name: one}, data: {a: YQ==}}\n',
    'an empty kind': secret('  a: YQ==').replace('kind: Secret', 'kind: ""'),
    'an empty version': secret('  a: YQ==').replace('apiVersion: v1', 'apiVersion: ""'),
    'an empty document that ends with dots': `${secret('  a: YQ==')}---\n...\n`,
    'an empty document that begins with dots': `...\n---\n${secret('  a: YQ==')}`,
    'empty documents that end with dots': `---\n...\n---\n# nothing\n...\n---\n${secret('  a: YQ==')}`,
    'a null document that ends with dots': `${secret('  a: YQ==')}---\n~\n...\n`,
    'an empty document that ends with dots, behind comments': `${secret('  a: YQ==')}--- # a\n# b\n...\n`,
    'an empty document that ends with dots, behind spaces': `${secret('  a: YQ==')}--- \n\n  # b\n...\n`,
    'two empty documents, of which one ends with dots': `${secret('  a: YQ==')}---\n---\n...\n`,
    'an object that ends with dots': `${secret('  a: YQ==')}...\n# more\n`,
    'another kind': 'apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata:\n  name: one\n',
    'no name': 'apiVersion: v1\nkind: Secret\ndata: {a: YQ==}\n',
    'no base64': secret('  a: "?"'),
    'base64 on two lines': secret('  a: |\n    YW\n    Jj'),
    'an unknown field': secret('  a: YQ==', 'dta: {}\n'),
    labels: secret('  a: YQ==').replace('  name: one', '  name: one\n  labels: {a: b, c: }'),
    'a label that is a number': secret('  a: YQ==').replace('  name: one', '  name: one\n  labels: {a: 1}'),
    'bytes that are no text': Buffer.from([...Buffer.from(secret('  a: YQ==')), 0xff, 0x0a]),
    Windows: secret('  a: YQ==').replaceAll('\n', '\r\n'),
  },
  names: [
    'data',
    'stringData',
    'metadata',
    'name',
    'labels',
    'namespace',
    'kind',
    'apiVersion',
    'type',
    'immutable',
    'a',
  ],
  async read(path) {
    const directory = join(path, '..')
    const stamp = (await scanDirectory(directory)).stamps.get(basename(path))
    const found =
      stamp && (await readObjectFile(directory, basename(path), stamp, { defaultNamespace: 'd', log: silent }))
    return found?.map(({ object: { reference, data }, labels }) => ({
      ...reference,
      labels: { ...labels },
      data: Object.fromEntries([...data].map(([name, bytes]) => [name, Buffer.from(bytes).toString('base64')])),
    }))
  },
  asRead(value) {
    const all = value as { namespace: string; labels: object | null; data: Record<string, string | null> }[]
    return all.map(({ namespace, labels, data, ...others }) => ({
      ...others,
      namespace: namespace === '' ? 'd' : namespace,
      labels: labels ?? {},
      data: Object.fromEntries(Object.entries(data).map(([name, text]) => [name, text ?? ''])),
    }))
  },
  stricter: [
    /stands twice/,
    // In a file, each object of JSON needs a list around it.
    /UNEXPECTED_TOKEN/,
    // A power cut leaves a file empty, and a misspelt field leaves an object so.
    /it is empty/,
    /unknown field/,
    // The API server refuses it.
    /metadata must be a map/,
    // kubectl takes the first `---` of a text with its document, and each one behind another, and no other.
    /ends a document that holds nothing/,
    // kubectl and the judge's types take it for two kinds.
    /in a \w+List must be/,
  ],
  milder: [
    // kubectl splits a file into lines first, and cuts UTF-16 so.
    /incomplete UTF-16/,
    // The type of a field that holdfast does not read, and a version of which no kind is one of its kinds.
    /cannot unmarshal/,
    /unexpected GroupVersion/,
  ],
}

const bytesOf = async (path: string) => (await import('node:fs/promises')).readFile(path)

/** Both readings of each text, by its index. */
async function readings({ mode, extension, read, asRead }: Loader, texts: readonly Text[]) {
  const directory = mkdtempSync(join(workingDirectory, `${mode}-`))
  const pki = join(directory, 'pki')
  mkdirSync(pki)
  const files = { 'ca.crt': authority.certificate, 'tls.crt': client.certificate, 'tls.key': client.key, token: 'abc' }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(pki, name), text)
  const paths = texts.map((_, index) => join(directory, `${index}${extension}`))
  for (const [index, text] of texts.entries()) writeFileSync(paths[index] ?? '', text)
  const program = await findProgram('kubelet-decode')
  const { stdout } = await promisify(execFile)(program, [directory, mode], { maxBuffer: 1 << 28 })
  const told = new Map(
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Reading & { path: string })
      .map((reading) => [reading.path, reading]),
  )
  const own = await Promise.all(
    paths.map((path) =>
      read(path).then(
        (value) => ({ value }),
        (error: unknown) => ({ error: String(error) }),
      ),
    ),
  )
  return paths.map((path, index): { judge: Reading; own: Reading } => {
    const { error, value } = told.get(path) ?? { error: 'the judge says nothing' }
    return { judge: error === undefined ? { value: asRead(value) } : { error }, own: own[index] ?? {} }
  })
}

/** Without the place and what stands in the text. */
function wordsOf(error: string): string {
  return error
    .replace(/^\w+: /, '')
    .replace(/^\S*?\d+(?:\.yaml)?(?::\d+)*: /, '')
    .replaceAll(/"[^"]*"/g, '"…"')
    .replace(/(?:; (?:users|contexts|clusters|known)|known are).*$/, '')
    .replace(/^\w+ \S+\/\S+: /, '')
}

/**
 * No text that both take may have another value. Of the corpus, each refusal by one alone is known. Of changed texts, the table says what
 * holdfast alone refuses; what it alone takes is known for the fixed seed, and a new seed's table shows what is not.
 */
async function compare(
  t: Test,
  loader: Loader,
  texts: readonly Text[],
  origin: 'corpus' | 'fixed seed' | 'new seed',
): Promise<void> {
  const found = await readings(loader, texts)
  const [stricter, milder, others]: [string[], string[], string[]] = [[], [], []]
  for (const [index, { judge, own }] of found.entries()) {
    if (own.error !== undefined && judge.error === undefined) stricter.push(wordsOf(own.error))
    else if (own.error === undefined && judge.error !== undefined)
      milder.push(
        loader.milder.find((words) => words.test(judge.error ?? ''))?.source ??
          `?? ${judge.error}\n${String(texts[index])}`,
      )
    else if (own.error === undefined && !isDeepStrictEqual(own.value, judge.value))
      others.push(
        `${JSON.stringify(own.value)}\nis for the judge\n${JSON.stringify(judge.value)}\n${String(texts[index])}`,
      )
  }
  t.strictSame(others.slice(0, 5), [], `both take ${others.length}, and read them otherwise`)
  const unknown = milder.filter((words) => words.startsWith('??'))
  if (origin !== 'new seed')
    t.strictSame(unknown.slice(0, 10), [], `holdfast takes ${unknown.length} that the judge refuses`)
  const foreign = stricter.filter((words) => !loader.stricter.some((known) => known.test(words)))
  if (origin === 'corpus') t.strictSame(counted(foreign), [], `holdfast refuses ${foreign.length} for other reasons`)
  const taken = found.filter(({ judge, own }) => judge.error === undefined && own.error === undefined).length
  t.comment(`${texts.length} texts, both take ${taken}`)
  t.comment(`the judge takes and holdfast refuses ${stricter.length}`, ...counted(stricter))
  t.comment(`the judge refuses and holdfast takes ${milder.length}`, ...counted(milder))
  t.ok(taken > texts.length / 20, `both take ${taken}`)
}

for (const loader of [kubeconfigs, objects]) {
  await t.test(`holdfast reads each of the corpus as the judge of ${loader.mode} does`, (t) =>
    compare(t, loader, Object.values(loader.corpus), 'corpus'),
  )
  for (const from of replaying ? [seed] : [1, seed]) {
    await t.test(`holdfast reads changed ${loader.mode} as the judge does, HOLDFAST_SEED=${from}`, async (t) => {
      const texts = Object.values(loader.corpus).filter((text) => typeof text === 'string' && text.length > 20)
      const drawn = mutated(texts as string[], count, from, loader.names)
      await compare(
        t,
        loader,
        drawn.map(({ text }) => text),
        from === 1 || replaying ? 'fixed seed' : 'new seed',
      )
    })
  }
}
