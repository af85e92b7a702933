/** One value changes, and nothing else of the text does. */
import t from 'tap'
import { withTextAt } from '../../src/yaml/edit.js'

const at = (text: string, value = 'v', path = ['metadata', 'annotations', 'k/e.y']) =>
  withTextAt(text, path, value, 'manifest')

const rows: readonly [string, string, string | undefined][] = [
  [
    'a new mapping, before what its author commented',
    '# head\nmetadata:\n  # its name\n  name: "etcd" # really\nspec: {a: 0644}\n',
    '# head\nmetadata:\n  # its name\n  "annotations": {"k/e.y": "v"}\n  name: "etcd" # really\nspec: {a: 0644}\n',
  ],
  [
    'a further pair',
    'metadata:\n    annotations:\n        a: b # c\n    name: x\n',
    'metadata:\n    annotations:\n        "k/e.y": "v"\n        a: b # c\n    name: x\n',
  ],
  ['another value', "metadata:\n  annotations: { k/e.y: 'w' }\n", 'metadata:\n  annotations: { k/e.y: "v" }\n'],
  [
    'another value of a block',
    'metadata:\n  annotations:\n    k/e.y: w\n  name: x',
    'metadata:\n  annotations:\n    k/e.y: "v"\n  name: x',
  ],
  ['an empty mapping', 'metadata: {annotations: {}}', 'metadata: {annotations: {"k/e.y": "v"}}'],
  [
    'a mapping that is missing',
    'metadata:\n  annotations:\n  name: x\n',
    'metadata:\n  annotations: {"k/e.y": "v"}\n  name: x\n',
  ],
  ['null', 'metadata:\n  annotations: null\n', 'metadata:\n  annotations: {"k/e.y": "v"}\n'],
  ['JSON', '{"metadata":{"name":"x"}}', '{"metadata":{"annotations": {"k/e.y": "v"}, "name":"x"}}'],
  [
    'the first of two documents',
    'metadata:\n  name: x\n---\nmetadata:\n  name: y\n',
    'metadata:\n  "annotations": {"k/e.y": "v"}\n  name: x\n---\nmetadata:\n  name: y\n',
  ],
  [
    'the last of a field that stands twice',
    'metadata: {a: b}\nmetadata:\n  annotations: {a: b}\n  annotations: {k/e.y: w, k/e.y: x}\n',
    'metadata: {a: b}\nmetadata:\n  annotations: {a: b}\n  annotations: {k/e.y: w, k/e.y: "v"}\n',
  ],
  ['an empty first document', '---\n---\nmetadata:\n  name: x\n', undefined],
  ['an alias', 'a: &a {b: c}\nmetadata:\n  annotations: *a\n', undefined],
  ['no such mapping', 'kind: Pod\n', undefined],
]

await t.test('withTextAt changes one value, and no other byte', async (t) => {
  for (const [what, text, changed] of rows) t.equal(await at(text), changed, what)
  t.equal(await at('metadata:\n  uid: a\n', 'b', ['metadata', 'uid']), 'metadata:\n  uid: "b"\n')
})

const removals: readonly [string, string, string | undefined][] = [
  [
    'the first line of several',
    'metadata:\n  annotations:\n    k/e.y: w # why\n    # kept\n    a: b\n  name: x\n',
    'metadata:\n  annotations:\n    # kept\n    a: b\n  name: x\n',
  ],
  [
    'the last line of several',
    'metadata:\n  annotations:\n    a: b\n    k/e.y: "w"\n  name: x\n',
    'metadata:\n  annotations:\n    a: b\n  name: x\n',
  ],
  [
    'a text of several lines',
    'metadata:\n  annotations:\n    k/e.y: |\n      a\n      b\n    a: b\n',
    'metadata:\n  annotations:\n    a: b\n',
  ],
  [
    'the first in brackets',
    '{"metadata":{"annotations":{"k/e.y":"w", "a":"b"}}}',
    '{"metadata":{"annotations":{"a":"b"}}}',
  ],
  ['the last in brackets', 'metadata: {annotations: {a: b, k/e.y: w}}', 'metadata: {annotations: {a: b}}'],
  ['the only one in brackets', 'metadata: {annotations: {k/e.y: w}}', 'metadata: {annotations: {}}'],
  ['the only one of a block', 'metadata:\n  annotations:\n    k/e.y: w\n', undefined],
  ['a field that is missing', 'metadata: {annotations: {a: b}}', undefined],
  ['a field of an alias', 'a: &a {k/e.y: c}\nmetadata:\n  annotations: *a\n', undefined],
]

await t.test('withTextAt removes one field, and no other byte', async (t) => {
  const without = (text: string, path: string[]) => withTextAt(text, path, undefined, 'manifest')
  for (const [what, text, changed] of removals)
    t.equal(await without(text, ['metadata', 'annotations', 'k/e.y']), changed, what)
  const block = 'metadata:\n  annotations:\n    a: b\n  # its name\n  name: x\n'
  t.equal(await without(block, ['metadata', 'annotations']), 'metadata:\n  # its name\n  name: x\n')
})
