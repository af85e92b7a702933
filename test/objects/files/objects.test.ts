import t from 'tap'
import { objectName } from '../../../src/message-text.js'
import { parseDocuments, readObjects } from '../../../src/objects/files/objects.js'
import { recordingLog } from '../kubernetes/watching.js'

const logged: string[] = []
const context = { defaultNamespace: 'kube-system', version: 'file:1', log: recordingLog(logged) }

async function read(name: string, text: string): Promise<Record<string, Record<string, string>>> {
  const documents = await parseDocuments(name, text)
  const objects = documents.flatMap((document) => readObjects(document, context))
  return Object.fromEntries(
    objects.map(({ object, place }) => [
      `${objectName(object.reference)} at ${place}`,
      Object.fromEntries([...object.data].map(([key, bytes]) => [key, Buffer.from(bytes).toString('latin1')])),
    ]),
  )
}

void t.test('readObjects reads documents and lists, and passes over other kinds', async (t) => {
  const text = `# a comment
---
apiVersion: v1
kind: Secret
metadata: { name: one, namespace: other }
data: { a: YQ==, b: Yg== }
stringData: { b: plain, 8080: port }
---
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: ignored }
---
apiVersion: bitnami.com/v1
kind: Secret
metadata: { name: ignored }
---
apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: ConfigMap
    metadata: { name: two }
    data:
      text: |
        lines
        of text
    binaryData: { raw: /w== }
  - apiVersion: v1
    kind: Service
    metadata: { name: ignored }
  - apiVersion: v1
    kind: SecretList
    items:
      - kind: ""
        metadata: { name: three }
...
`
  t.strictSame(await read('a.yaml', text), {
    'Secret other/one at a.yaml:3': { a: 'a', b: 'plain', 8080: 'port' },
    'ConfigMap kube-system/two at a.yaml:21': { text: 'lines\nof text\n', raw: '\xff' },
    'Secret kube-system/three at a.yaml:32: items[0]': {},
  })
  t.equal(logged.length, 3)
})

void t.test('readObjects reads JSON, with tabs, and as kubectl prints lists', async (t) => {
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'one' }, data: { a: 'YQ==' } }
  const list = { apiVersion: 'v1', kind: 'List', items: [secret, { ...secret, metadata: { name: 'two' } }] }
  t.strictSame(await read('a.json', JSON.stringify(list, undefined, '\t')), {
    'Secret kube-system/one at a.json: items[0]': { a: 'a' },
    'Secret kube-system/two at a.json: items[1]': { a: 'a' },
  })
  t.strictSame(await read('a.yaml', JSON.stringify(secret, undefined, '\t')), {
    'Secret kube-system/one at a.yaml:1': { a: 'a' },
  })
  t.strictSame(await read('a.json', ' \n'), {})
})

void t.test('readObjects names each fault with its place, and without a value', async (t) => {
  const head = 'apiVersion: v1\nkind: Secret\nmetadata: { name: one }\n'
  const cases: [name: string, text: string, message: string | RegExp][] = [
    ['a.json', '{\n "a": 1,\n "canary"\n}', /^a\.json:[34]: not valid JSON$/],
    ['a.json', '{\n "a": "canary', /^a\.json:2: not valid JSON$/],
    ['a.json', '[]', 'a.json:1: the document must be a map, not a list'],
    ['a.yaml', `${head}data: { a: 17 }`, 'a.yaml:1: Secret kube-system/one: data["a"] must be a string, not a number'],
    [
      'a.yaml',
      `${head}data: { a: !!binary Y2FuYXJ5 }`,
      'a.yaml:1: Secret kube-system/one: data["a"] is not valid base64',
    ],
    [
      'a.yaml',
      `${head}stringData: { a: true }`,
      'a.yaml:1: Secret kube-system/one: stringData["a"] must be a string, not a boolean',
    ],
    ['a.yaml', `${head}data: { ../a: Y2FuYXJ5 }`, /data has the key "\.\.\/a"/],
    ['a.yaml', `${head}? [canary]\n: x`, 'a.yaml:4: a field whose name is neither text nor a whole number: quote it'],
    ['a.yaml', `${head}data: "canary`, /^a\.yaml:4: not valid YAML \(MISSING_CHAR\)$/],
    ['a.yaml', 'apiVersion: v1\nkind: Secret\nmetadata: { name: [] }', 'a.yaml:1: metadata.name must be a string'],
    ['a.yaml', 'apiVersion: v1\nkind: Secret', 'a.yaml:1: metadata must be a map, not missing'],
    [
      'a.yaml',
      'apiVersion: v1\nkind: Secret\nmetadata: { name: A }',
      'a.yaml:1: metadata.name "A" is not a name that Kubernetes allows',
    ],
    [
      'a.yaml',
      'apiVersion: v1\nkind: Secret\nmetadata: { name: a, namespace: a/b }',
      /^a\.yaml:1: metadata\.namespace "a\/b" is not a name/,
    ],
    ['a.yaml', `kind: List\napiVersion: v1\nitems: canary`, 'a.yaml:1: items must be a list'],
    [
      'a.yaml',
      `${head}dta: { a: Y2FuYXJ5 }`,
      'a.yaml:1: Secret kube-system/one: unknown field "dta": known are apiVersion, kind, metadata, data, stringData, type, immutable',
    ],
    ['a.yaml', `${head}stringdata: { a: canary }`, /unknown field "stringdata"/],
    [
      'a.yaml',
      'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: one }\nstringData: { a: canary }',
      /ConfigMap kube-system\/one: unknown field "stringData"/,
    ],
    ['a.yaml', 'apiVersion: v1\nkind: ""', 'a.yaml:1: apiVersion and kind are required, as strings'],
    [
      'a.yaml',
      'apiVersion: v1\nkind: SecretList\nitems: [{kind: ConfigMap, metadata: {name: canary}}]',
      'a.yaml:3: kind and apiVersion in a SecretList must be Secret and v1, or missing',
    ],
    ['a.yaml', `${head}---\n# nothing\n...\n`, 'a.yaml:6: ... ends a document that holds nothing: remove it'],
    ['a.yaml', nested(6), /lists are nested too deeply/],
    ['a.yaml', bomb(), /^a\.yaml:1: not valid YAML \(an unknown alias/],
  ]
  for (const [name, text, message] of cases) {
    await t.rejects(read(name, text), { name: 'FileError', message }, text.slice(-40))
    const said = await read(name, text).catch((error: unknown) => String(error))
    t.notMatch(JSON.stringify(said), 'canary')
    t.notMatch(JSON.stringify(said), 'Y2FuYXJ5')
  }
})

void t.test('readObjects takes a manifest with a deletionTimestamp as being deleted', async (t) => {
  const metadata = '{ name: one, deletionTimestamp: "2026-01-01T00:00:00Z" }'
  const [document] = await parseDocuments('a.yaml', `apiVersion: v1\nkind: Secret\nmetadata: ${metadata}`)
  t.match(document && readObjects(document, context), [{ object: { terminating: true } }])
})

function nested(depth: number): string {
  return depth === 0 ? '{}' : `{ apiVersion: v1, kind: List, items: [${nested(depth - 1)}] }`
}

/** Each level refers to the one before ten times. */
function bomb(): string {
  const levels = Array.from({ length: 9 }, (_, level) => {
    const items = level === 0 ? 'x' : Array.from({ length: 10 }, () => `*a${level - 1}`).join(', ')
    return `a${level}: &a${level} [${items}]\n`
  })
  return levels.join('')
}
