/** Kubeconfigs, object files and configurations, mangled: an error is the reader's own, its place is in the text, and it quotes no secret. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { stringify } from 'yaml'
import { parseConfiguration } from '../../src/config/parse.js'
import { ConfigurationError } from '../../src/config/problem.js'
import { parseDocuments } from '../../src/objects/files/objects.js'
import { FileError } from '../../src/objects/files/error.js'
import { KubeconfigError, parseKubeconfig } from '../../src/kubernetes/credentials/kubeconfig-file.js'
import { resolveContext } from '../../src/kubernetes/credentials/kubeconfig.js'
import { holds } from '../property.js'

const canary = 'CANARY7c2e'
const kubeconfig = {
  apiVersion: 'v1',
  kind: 'Config',
  'current-context': 'main',
  clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:6443' } }],
  users: [{ name: 'u', user: { token: canary } }],
  contexts: [{ name: 'main', context: { cluster: 'c', user: 'u', namespace: 'web' } }],
}
const objects = {
  apiVersion: 'v1',
  kind: 'List',
  items: [{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a', namespace: 'web' }, stringData: { key: canary } }],
}
const configuration = {
  apiVersion: 'holdfast.dev/v1alpha1',
  kind: 'AgentConfiguration',
  source: { kubernetes: {}, namespace: 'web' },
  directories: [{ path: '/d', contents: [{ secret: 'a' }, { configMap: 'b', into: 'x' }], mode: '0755' }],
}

/** The text with some pieces of it changed, lost, doubled or put in. */
function mangled(value: object) {
  const texts = [stringify(value), JSON.stringify(value, undefined, 2)]
  const pieces = [
    '\t',
    '  ',
    '\n',
    '---\n',
    '&a ',
    '*a',
    '!!x ',
    '{',
    ']',
    '"',
    ': ',
    '- ',
    '%YAML 1.1\n',
    '<<: *a',
    '|',
    '\u2028',
    'é',
  ]
  const edit = fc.record({
    at: fc.nat({ max: 10_000 }),
    lost: fc.nat({ max: 8 }),
    piece: fc.constantFrom('', ...pieces),
  })
  return fc.tuple(fc.constantFrom(...texts), fc.array(edit, { maxLength: 3 })).map(([text, edits]) =>
    edits.reduce((text, { at, lost, piece }) => {
      const place = at % (text.length + 1)
      return text.slice(0, place) + piece + text.slice(place + lost)
    }, text),
  )
}

/** Line, and column where there is one, are in the text. */
function assertInside(text: string, line: number, column?: number): void {
  const lines = text.split(/\r\n|[\n\r]/)
  assert.ok(line >= 1 && line <= lines.length, `line ${line} of ${lines.length}`)
  if (column === undefined) return
  assert.ok(column >= 1 && column <= (lines[line - 1] ?? '').length + 1, `column ${column} of line ${line}`)
}

interface Reader {
  readonly name: string
  readonly value: object
  readonly read: (text: string) => Promise<unknown>
  /** Checks the error's class, its place in the text, and its message. */
  readonly check: (error: unknown, text: string) => void
}

const readers: readonly Reader[] = [
  {
    name: 'a kubeconfig',
    value: kubeconfig,
    read: async (text) => resolveContext([await parseKubeconfig(text, 'FILE')], undefined),
    check(error, text) {
      assert.ok(error instanceof KubeconfigError, String(error))
      assert.ok(!error.message.includes(canary), error.message)
      const [, line, column] = /^FILE:(\d+):(\d+)/.exec(error.message) ?? []
      if (line !== undefined) assertInside(text, Number(line), Number(column))
    },
  },
  {
    name: 'objects',
    value: objects,
    read: (text) => parseDocuments('FILE.yaml', text),
    check(error, text) {
      assert.ok(error instanceof FileError, String(error))
      assert.ok(!error.message.includes(canary), error.message)
      const [, line] = /^FILE\.yaml:(\d+): /.exec(error.message) ?? []
      assert.ok(line !== undefined, error.message)
      assertInside(text, Number(line))
    },
  },
  {
    name: 'a configuration',
    value: configuration,
    read: (text) => parseConfiguration(text, 'FILE'),
    check(error, text) {
      assert.ok(error instanceof ConfigurationError, String(error))
      assert.ok(error.problems.length > 0)
      for (const { line, column } of error.problems) assertInside(text, line, column)
    },
  },
]

for (const { name, value, read, check } of readers) {
  await t.test(`mangled text of ${name} is read, or refused with its place`, async (t) => {
    for (const text of [stringify(value), JSON.stringify(value)]) await t.resolves(read(text), 'it is read as it is')
    let refused = 0
    const property = fc.asyncProperty(mangled(value), async (text) => {
      try {
        await read(text)
      } catch (error) {
        refused++
        check(error, text)
      }
    })
    await holds(t, 'errors', property, { runs: 250 })
    t.ok(refused > 50, `${refused} were refused`)
  })
}
