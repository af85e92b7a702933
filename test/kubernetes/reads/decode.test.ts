import t from 'tap'
import { addStringData, decodeData, decodeObject } from '../../../src/kubernetes/reads/decode.js'
import type { ObjectKind } from '../../../src/objects/types.js'
import { reference } from '../../objects/recorder.js'

const metadata = { name: 'x', namespace: 'kube-system', uid: 'u', resourceVersion: '7' }

function decode(kind: ObjectKind, body: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    [...decodeData(kind, body)].map(([key, bytes]) => [key, Buffer.from(bytes).toString('latin1')]),
  )
}

void t.test('decodeObject makes bytes by key', async (t) => {
  const cases: [ObjectKind, Record<string, unknown>, Record<string, string>][] = [
    ['Secret', {}, {}],
    ['Secret', { data: null }, {}],
    ['Secret', { data: { empty: '', nothing: null } }, { empty: '', nothing: '' }],
    ['Secret', { data: { a: '/w==', 'b.c-d_E': 'YQpi' } }, { a: '\xff', 'b.c-d_E': 'a\nb' }],
    ['Secret', { data: { a: 'YW\r\nJj\n' } }, { a: 'abc' }],
    ['Secret', { data: { __proto: 'YQ==', constructor: 'YQ==' } }, { __proto: 'a', constructor: 'a' }],
    ['ConfigMap', { data: { a: 'é' }, binaryData: { b: 'AAE=' } }, { a: '\xc3\xa9', b: '\x00\x01' }],
    ['ConfigMap', { data: null, binaryData: null }, {}],
    ['ConfigMap', { data: { a: 'not base64!' } }, { a: 'not base64!' }],
  ]
  for (const [kind, body, expected] of cases) t.strictSame(decode(kind, body), expected)
  const own = decodeData('Secret', JSON.parse('{"data":{"__proto__":"YQ=="}}') as Record<string, unknown>)
  t.strictSame([...own.keys()], ['__proto__'])
  for (const bytes of decodeData('Secret', { data: { a: 'YWJj' } }).values()) {
    t.equal(bytes.buffer.byteLength, 3, 'memory of its own')
  }
})

void t.test('an error of decodeObject names the key, and not its value', async (t) => {
  const long = 'k'.repeat(254)
  const cases: [ObjectKind, Record<string, unknown>, string][] = [
    ['Secret', { data: { a: 'canary' } }, 'data["a"] is not valid base64'],
    ['Secret', { data: { a: 'Y2FuYXJ5_-==' } }, 'data["a"] is not valid base64'],
    ['Secret', { data: { a: 'YQ=' } }, 'data["a"] is not valid base64'],
    ['Secret', { data: { a: 'Y===' } }, 'data["a"] is not valid base64'],
    ['Secret', { data: { a: 'Y Q==' } }, 'data["a"] is not valid base64'],
    ['Secret', { data: { a: 'YQ==YQ==' } }, 'data["a"] is not valid base64'],
    ['Secret', { data: { a: 17 } }, 'data["a"] must be a string, not a number'],
    ['Secret', { data: { a: { b: 'canary' } } }, 'data["a"] must be a string, not a map'],
    ['Secret', { data: 'canary' }, 'data must be a map, not a string'],
    ['Secret', { data: ['canary'] }, 'data must be a map, not a list'],
    ['ConfigMap', { data: { a: true } }, 'data["a"] must be a string, not a boolean'],
    ['ConfigMap', { binaryData: { a: 'canary' } }, 'binaryData["a"] is not valid base64'],
    ['ConfigMap', { data: { a: 'canary' }, binaryData: { a: 'YQ==' } }, 'key "a" is in both data and binaryData'],
    ['Secret', { data: { [long]: '' } }, 'data has a key of 254 characters; at most 253 are allowed'],
    ['Secret', { data: { a: 'A'.repeat(1_400_000) } }, 'it holds 1050000 bytes; Kubernetes allows at most 1048576'],
    ...['', '.', '..', '..data', 'a/b', '../x', 'a\0b', 'ä', 'a b'].map(
      (key): [ObjectKind, Record<string, unknown>, string] => [
        'Secret',
        { data: { [key]: 'Y2FuYXJ5' } },
        `data has the key ${JSON.stringify(key)}: keys are letters, digits, '-', '_' and '.', and do not start with '..'`,
      ],
    ),
  ]
  for (const [kind, body, message] of cases) {
    t.throws(() => decodeData(kind, body), { name: 'InvalidObjectError', message })
    t.notMatch(message, 'canary')
  }
  t.doesNotThrow(() => decodeData('Secret', { data: { [long.slice(1)]: '', '.hidden': '', 'a..b': '' } }))
})

void t.test('stringData wins', async (t) => {
  const data = decodeData('Secret', { data: { a: 'YQ==', b: 'Yg==' } })
  addStringData(data, { a: 'new', c: 'c' })
  t.strictSame(
    [...data].map(([key, bytes]) => [key, Buffer.from(bytes).toString()]),
    [
      ['a', 'new'],
      ['b', 'b'],
      ['c', 'c'],
    ],
  )
  t.throws(() => addStringData(data, { '..': 'x' }), { name: 'InvalidObjectError' })
  t.throws(() => addStringData(data, { a: 'x'.repeat(1024 * 1024 + 1) }), { name: 'InvalidObjectError' })
})

void t.test('decodeObject keeps the version and the deletion of an object, and nothing else', async (t) => {
  const cert = reference('x')
  const object = decodeObject(cert, {
    metadata: { ...metadata, managedFields: ['much'] },
    data: { a: 'YQ==' },
    type: 'Opaque',
  })
  t.strictSame(Object.keys(object).sort(), ['data', 'reference', 'resourceVersion', 'terminating', 'uid'])
  t.match(object, { uid: 'u', resourceVersion: '7', terminating: false })
  t.ok(decodeObject(cert, { metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }).terminating)
  for (const [body, message] of [
    [undefined, 'the object must be a map, not missing'],
    [null, 'the object must be a map, not null'],
    [{}, 'metadata must be a map, not missing'],
    [{ metadata: { ...metadata, uid: '' } }, 'metadata.uid must be a string that is not empty'],
    [{ metadata: { ...metadata, resourceVersion: 7 } }, 'metadata.resourceVersion must be a string that is not empty'],
  ] as const) {
    t.throws(() => decodeObject(cert, body), { name: 'InvalidObjectError', message })
  }
})

void t.test('decodeObject refuses more keys than it reads, and versions and uids that are none', async (t) => {
  const refused = (metadata: object, data: unknown = {}): string => {
    try {
      decodeObject(reference('x'), { metadata: { name: 'x', namespace: 'kube-system', ...metadata }, data })
      return 'taken'
    } catch (error) {
      return (error as Error).message
    }
  }
  const version = "metadata.resourceVersion must be at most 64 letters, digits and '-._:~', the first a letter or digit"
  const uid = "metadata.uid must be at most 253 letters, digits and '-._:~', the first a letter or digit"
  t.equal(refused({ uid: 'u'.repeat(253), resourceVersion: '9'.repeat(64) }), 'taken')
  t.equal(refused({ uid: 'u', resourceVersion: '9'.repeat(65) }), version)
  t.equal(refused({ uid: 'u', resourceVersion: '7\u001b[2J' }), version)
  for (const path of ['../1', '..', '.', '/etc', '1/../2', '-1', '~root', '1+1', '1=1', '1%2F', '1&watch', '1?', '1#'])
    t.equal(refused({ uid: 'u', resourceVersion: path }), version, path)
  for (const path of ['../u', '..', '-u', 'a/b']) t.equal(refused({ uid: path, resourceVersion: '7' }), uid, path)
  for (const taken of ['sha256:0aF', 'node-1.example', 'a_b~c', '0'])
    t.equal(refused({ uid: taken, resourceVersion: taken }), 'taken', taken)
  t.equal(refused({ uid: 'u'.repeat(254), resourceVersion: '7' }), uid)
  t.equal(refused({ uid: 'a b', resourceVersion: '7' }), uid)
  const many = Object.fromEntries(Array.from({ length: 32_769 }, (_, index) => [`k${index}`, '']))
  const keys = (count: number) => `data has ${count} keys; holdfast reads at most 32768`
  t.equal(refused({ uid: 'u', resourceVersion: '7' }, many), keys(32_769))
  t.equal(refused({ uid: 'u', resourceVersion: '7' }, 130_000), keys(130_000), 'as parseBounded() tells it')
})
