/** `holdfast write`: the sources of its content, and its refusals before any change. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { makeCertificate, makeKey } from '../../directories/make-certificates.js'
import { contentKinds, type ContentKind } from '../../../src/cli/content/content-kinds.js'
import { begin, ended, holdfastInJson as holdfast, holdfastProcess, scratch } from '../holdfast.js'

const canary = 'CANARY-77ab'
const good = 'what was there, and is good'

/** A file with content, and what must be true of it where a command refused. */
function target(t: Test) {
  const root = scratch(t)
  const file = join(root, 'file')
  writeFileSync(file, good)
  const before = statSync(file)
  const untouched = (what: string) => {
    t.equal(readFileSync(file, 'utf8'), good, `${what}: the content is what it was`)
    t.equal(statSync(file).ino, before.ino, `${what}: it is the same file`)
    t.strictSame(
      readdirSync(root).filter((name) => name.startsWith('.')),
      [],
      `${what}: nothing lies beside it`,
    )
  }
  return { root, file, untouched }
}

const digestOf = (content: string | Uint8Array) => `sha256:${createHash('sha256').update(content).digest('hex')}`

await t.test('write refuses empty content without --allow-empty', async (t) => {
  const { root, file, untouched } = target(t)
  const refused = await holdfast(['write', file], { input: '' })
  t.match(refused, { code: 1, stdout: '' })
  t.match(JSON.parse(refused.stderr), { level: 'error', path: file, published: false, msg: /--allow-empty/ })
  untouched('an empty pipe')
  const absent = join(root, 'absent')
  t.match(await holdfast(['write', absent, '-o', 'json'], { input: '' }), { code: 1, stdout: /"published": false/ })
  t.strictSame(readdirSync(root), ['file'])

  const allowed = await holdfast(['write', file, '--allow-empty'], { input: '' })
  t.match(allowed, { code: 0, stdout: /^replaced / })
  t.equal(readFileSync(file, 'utf8'), '')
})

await t.test('write leaves the file where the command in front of the pipe failed', async (t) => {
  const { file, untouched } = target(t)
  const child = begin(['write', file])
  child.stdin?.end()
  t.match(await ended(child), { code: 1, stdout: '' })
  untouched('false | holdfast write')
})

await t.test('write --from FILE publishes a file, also through the links of a volume', async (t) => {
  const { root, file } = target(t)
  mkdirSync(join(root, '..data'))
  const bytes = Buffer.of(0, 255, 10, 254)
  writeFileSync(join(root, '..data', 'tls.crt'), bytes)
  symlinkSync('..data/tls.crt', join(root, 'tls.crt'))
  const published = await holdfast(['write', file, '--from', join(root, 'tls.crt')], { input: 'not this' })
  t.match(published, { code: 0, stdout: /^replaced / })
  t.ok(readFileSync(file).equals(bytes))
})

await t.test('write refuses an unreadable --from as wrong usage', async (t) => {
  const { root, file, untouched } = target(t)
  const from = (path: string) => holdfast(['write', file, '--from', path], { input: 'x' })
  t.match(await from(join(root, 'nowhere')), { code: 2, stderr: /nowhere: ENOENT: no such file or directory/ })
  t.match(await from(root), { code: 2, stderr: /is not a regular file/ })
  t.match(await from(''), { code: 2, stderr: /--from is empty/ })
  untouched('--from')
})

await t.test('write --expect holds the bytes to a digest', async (t) => {
  const { file, untouched } = target(t)
  const write = (content: string | Uint8Array, expected: string) =>
    holdfast(['write', file, '--expect', expected], { input: content })
  const cut = await write(canary, digestOf(`${canary}\n`))
  t.match(cut, { code: 1, stdout: '' })
  t.match(cut.stderr, new RegExp(`has the digest ${digestOf(canary)}, not ${digestOf(`${canary}\n`)}`))
  t.notMatch(cut.stderr, canary)
  untouched('another digest')
  for (const wrong of ['sha256:', 'sha1:00', digestOf('x').slice(0, -1), digestOf('x').slice(7), '']) {
    t.match(await write('x', wrong), { code: 2, stderr: /sha256: and 64 hexadecimal digits/ }, wrong)
  }
  untouched('no digest')
  const bytes = Buffer.of(0, 255, 1)
  t.match(await write(bytes, digestOf(bytes).toUpperCase().replace('SHA', 'sha')), { code: 0 })
  t.ok(readFileSync(file).equals(bytes))
})

const pair = (key = makeKey()) => ({ certificate: makeCertificate(key), key })
const { certificate, key } = pair()
const other = pair()
const pod = `apiVersion: v1
kind: Pod
metadata: { name: web }
spec: { containers: [{ name: web, image: "registry.example/web:1" }] }
`
const short = (pem: string) => pem.slice(0, -40)

interface Samples {
  readonly fit: readonly string[]
  readonly unfit: readonly (readonly [what: string, content: string | Uint8Array, message: RegExp])[]
}

/** The compiler asks for samples of each kind. */
const samples: Readonly<Record<ContentKind, Samples>> = {
  pem: {
    fit: [certificate, key, `# a comment\n${certificate}${other.certificate}`, certificate + key],
    unfit: [
      ['no PEM', canary, /holds no PEM block/],
      ['cut short', `${certificate}${short(other.certificate)}`, /line \d+: it is cut short/],
      ['a body that is no base64', certificate.replace(/\n./, '\n*'), /base64/],
      ['a certificate that is none', certificate.replaceAll('CERTIFICATE', 'PRIVATE KEY'), /PRIVATE KEY at line 1/],
      ['a key that is none', key.replaceAll('PRIVATE KEY', 'CERTIFICATE'), /CERTIFICATE at line 1/],
      ['DER', Buffer.of(0x30, 1, 0), /is DER, not PEM/],
      ['a byte order mark', `\uFEFF${certificate}`, /byte order mark/],
    ],
  },
  'key-pair': {
    fit: [certificate + key, key + certificate + other.certificate],
    unfit: [
      ['no key', certificate, /holds no private key/],
      ['no certificate', key, /holds no certificate/],
      ["another certificate's key", certificate + other.key, /does not belong to the first certificate/],
      ['a chain that is cut', certificate + key + short(other.certificate), /cut short/],
    ],
  },
  yaml: {
    fit: ['a: 1\n', '- a\n- b\n', 'a: 1\n---\nb: 2\n', '{"a": [1]}', '1: x\n', 'base: &b {x: 1}\nd: {<<: *b}\n'],
    unfit: [
      ['bad indent', `a:\n  - ${canary}\n b: 1\n`, /line \d+: not valid YAML/],
      ['nothing but a comment', '# nothing\n', /holds no YAML document/],
      ['bytes that are no text', Buffer.of(0x61, 0x3a, 0xff), /not UTF-8/],
    ],
  },
  json: {
    fit: ['{"a": 1}\n', '[]', '"text"', 'null'],
    unfit: [
      ['cut short', `{"a": "${canary}"`, /not valid JSON/],
      ['YAML', 'a: 1', /not valid JSON/],
      ['two documents', '{}\n{}', /not valid JSON/],
      ['bytes that are no text', Buffer.of(0x22, 0xff, 0x22), /not UTF-8/],
    ],
  },
  pod: {
    fit: [pod, JSON.stringify({ ...(JSON.parse('{"apiVersion":"v1","kind":"Pod"}') as object), ...podBody() })],
    unfit: [
      ['another kind', pod.replace('Pod', 'Deployment'), /kubelet runs only kind Pod/],
      ['no image', pod.replace(/, image: "[^"]*"/, ''), /image is missing/],
      [
        'a Secret volume',
        `${pod.trimEnd().slice(0, -1)}, volumes: [{ name: s, secret: { secretName: s } }] }`,
        /static pod/,
      ],
      ['cut short', pod.slice(0, 60), /./],
    ],
  },
}

function podBody() {
  return { metadata: { name: 'web' }, spec: { containers: [{ name: 'web', image: 'registry.example/web:1' }] } }
}

await t.test('write --validate refuses content of another kind', async (t) => {
  for (const kind of contentKinds) {
    const { file, untouched } = target(t)
    for (const [what, content, message] of samples[kind].unfit) {
      const refused = await holdfast(['write', file, '--validate', kind], { input: content })
      t.match(refused, { code: 1, stdout: '', stderr: message }, `${kind}: ${what}`)
      t.match(JSON.parse(refused.stderr), { level: 'error', path: file, published: false })
      t.notMatch(refused.stderr, canary)
      untouched(`${kind}: ${what}`)
    }
    for (const content of samples[kind].fit) {
      const published = await holdfast(['write', file, '--validate', kind], { input: content })
      t.equal(published.code, 0, `${kind}: ${published.stderr}`)
      t.equal(readFileSync(file, 'utf8'), content)
    }
  }
})

await t.test('write publishes the output of a command that ended with 0', async (t) => {
  const { file, untouched } = target(t)
  const write = (...command: string[]) => holdfastProcess(['write', file, '--', ...command], { input: 'given' })
  const failed = await write('sh', '-c', `echo ${canary}; echo complaint >&2; exit 3`)
  t.match(failed, { code: 1, stdout: '', stderr: /sh ended with exit code 3/ })
  t.match(failed.stderr, /^complaint$/m, 'standard error is passed through')
  t.notMatch(failed.stderr, canary, 'neither what it printed nor its arguments are repeated')
  untouched('a command that failed')
  t.match(await write('sh', '-c', 'echo x; kill -KILL $$'), { code: 1, stderr: /sh was ended by SIGKILL/ })
  t.match(await write('true'), { code: 1, stderr: /content is empty/ })
  t.match(await write('no-such-program-here', canary), {
    code: 1,
    stderr: /no-such-program-here could not be started \(ENOENT\)/,
  })
  const tooMuch = ['--validate', 'pem', '--', 'head', '-c', '67108865', '/dev/zero']
  t.match(await holdfastProcess(['write', file, ...tooMuch]), { code: 1, stderr: /head printed more than 64 MiB/ })
  untouched('commands that failed')

  t.match(await write('sh', '-c', 'cat; printf "\\000\\377"'), { code: 0, stdout: /^replaced / })
  t.ok(readFileSync(file).equals(Buffer.concat([Buffer.from('given'), Buffer.of(0, 255)])), 'it has standard input')
})

await t.test('write refuses an unfit target before the command runs', async (t) => {
  const { root, file, untouched } = target(t)
  const ran = join(root, 'ran')
  const write = (path: string, ...flags: string[]) =>
    holdfast(['write', path, ...flags, '--', 'sh', '-c', 'touch "$1"; echo x', 'sh', ran])
  const missing = join(root, 'missing/below/file')
  t.match(await write(missing), { code: 1, stdout: '', stderr: /missing does not exist/ })
  t.notOk(existsSync(ran), 'a missing parent')
  t.match(await write(join(root, 'missing/file'), '--parents'), { code: 0, stdout: /^created / })
  t.ok(existsSync(ran))
  rmSync(ran)
  symlinkSync(file, join(root, 'link'))
  t.match(await write(join(root, 'link')), { code: 1, stderr: /is a symbolic link/ })
  t.match(await write(root), { code: 1, stderr: /is a directory/ })
  mkdirSync(join(root, 'sub'))
  const held = join(root, 'sub/held')
  t.equal((await holdfast(['write', held, '--allow-empty'])).code, 0)
  t.equal((await holdfast(['hold', held])).code, 0)
  t.match(await write(held), { code: 1, stderr: /held/ })
  t.notOk(existsSync(ran), 'a link, a directory, a hold')
  t.match(await write(held, '--release'), { code: 0, stdout: /^replaced / })
  untouched('what was refused')
})

await t.test('write passes a signal on to the command, and publishes nothing', async (t) => {
  const { root, file, untouched } = target(t)
  const output = join(root, 'output')
  const script = `trap 'echo got > "$1"; exit 0' TERM; echo ready >&2; while :; do sleep 0.05; done`
  const child = begin(['write', file, '--', 'sh', '-c', script, 'sh', output])
  const end = ended(child)
  if (child.stderr === null) throw new Error('no standard error')
  await once(child.stderr, 'data')
  child.kill('SIGTERM')
  t.match(await end, { code: 143, stdout: '' })
  t.equal(readFileSync(output, 'utf8'), 'got\n')
  untouched('a command that was interrupted')
})

await t.test('write refuses contradictory arguments', async (t) => {
  const { root, file, untouched } = target(t)
  const cases: [string[], RegExp][] = [
    [['write', file, 'cat', '/etc/hostname'], /too many arguments[\s\S]*-- COMMAND/],
    [['write', file, '--'], /no command after --/],
    [['write', file, '--from', join(root, 'x'), '--', 'true'], /--from and a command/],
    [['write', file, '--validate', 'toml'], /Allowed choices are pem, key-pair, yaml, json, pod/],
  ]
  for (const [args, message] of cases) {
    t.match(await holdfast(args, { input: 'x' }), { code: 2, stdout: '', stderr: message }, args.join(' '))
  }
  untouched('arguments')
  const dashed = await holdfast(['write', '--', join(root, '-x')], { input: 'x' })
  t.equal(dashed.code, 0, dashed.stderr)
})
