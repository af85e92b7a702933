/** Manifests, with what kubelet's decoder makes of each: test/e2e/kubelet-decode.test.ts lets kubelet's own code say so. */
import { json, plain, withContainer, withMetadata, withSpec, type KubeletCase } from './kubelet-case.js'
import { numbers, texts } from './kubelet-scalar-cases.js'

const shapes: readonly KubeletCase[] = [
  {
    what: 'ports in no list',
    text: withContainer('ports: {containerPort: 80}'),
    runs: false,
    refusal: /ports must be a list/,
  },
  {
    what: 'labels in a list',
    text: withMetadata('labels: [a]'),
    runs: false,
    refusal: /metadata\.labels must be a map/,
  },
  { what: 'an unknown field of any type', text: withSpec('value: [8080, {path: 5}]'), runs: true },
  {
    what: 'the unknown volume source of a known pod',
    text: withSpec('volumes: [{name: conf-dir, empty-dir: {}}, {name: other, other: {path: 5}}]'),
    runs: true,
  },
  {
    what: 'an unknown source of a projected volume',
    text: withSpec('volumes: [{name: data, projected: {sources: [{other: {}}]}}]'),
    runs: false,
    refusal: /projected\.sources\[0\]: a static pod may not refer .*an unknown kind of object/,
  },
  { what: 'a time', text: withMetadata('creationTimestamp: 2020-02-29T10:20:30Z'), runs: true },
  {
    what: 'no time',
    text: withMetadata('creationTimestamp: 2020-02-30T10:20:30Z'),
    runs: false,
    refusal: /must be a time/,
  },
  { what: 'a number as the name of a field', text: withMetadata('labels: {0x10: a, on: b, 8: c}'), runs: true },
  {
    what: 'nothing as the name of a field',
    text: withSpec('? \n  : a'),
    runs: false,
    refusal: /whose name is neither/,
  },
  {
    what: 'a merge',
    text: `${withContainer('args: &args [a]')}  initContainers: [{<<: {stdin: yes, name: x}, name: first, image: b}]\n`,
    runs: true,
  },
  { what: 'a merge of no mapping', text: withContainer('<<: [a]'), runs: false, refusal: /a merge key/ },
]

const tags: readonly KubeletCase[] = [
  {
    what: 'a float that is tagged as an integer',
    text: withSpec('terminationGracePeriodSeconds: !!int 1e3'),
    runs: false,
    refusal: /a YAML tag/,
  },
  {
    what: 'an integer that is tagged as one',
    text: withSpec('terminationGracePeriodSeconds: !!int "0x1_0"'),
    runs: true,
  },
  { what: 'a number that is tagged as text', text: withMetadata('annotations: {a: !!str 8080}'), runs: true },
  { what: 'bytes as text', text: withMetadata('annotations: {a: !!binary aGk=}'), runs: true },
  {
    what: 'bytes that are none',
    text: withMetadata('annotations: {a: !!binary "?"}'),
    runs: false,
    refusal: /line 3, column 49: a !!binary value that is not base64/,
  },
  { what: 'an unknown tag, which makes text', text: withMetadata('annotations: {a: !mine 80, b: ! 80}'), runs: true },
  { what: 'a tag of a mapping', text: withMetadata('annotations: !!omap {a: b}'), runs: true },
  {
    what: 'a tag up to the end of the list',
    text: withMetadata('finalizers: [!!str]'),
    runs: false,
    refusal: /a YAML tag/,
  },
]

const inList = (item: string): string => withContainer(`args: [${item}]`)

/** Places that YAML 1.2 reads in another way than kubelet. */
const places: readonly KubeletCase[] = [
  {
    what: 'a line of a tab',
    text: plain.replace('metadata', '\t\nmetadata'),
    runs: false,
    refusal: /line 3, column 1: not valid YAML \(a tab\)/,
  },
  { what: 'a tab in a block of text', text: withSpec('x: |\n    a\n    \tb'), runs: true },
  { what: 'a tab at the end of a line', text: plain.replace('metadata:', 'metadata:\t'), runs: true },
  {
    what: 'a carriage return in a line',
    text: withContainer('args: [a\rb: c]'),
    runs: false,
    refusal: /ends a line to Kubernetes alone/,
  },
  {
    what: 'a line separator in a line',
    text: withSpec('x:\n   \u2028hostPID: true'),
    runs: true,
    refusal: /ends a line to Kubernetes alone/,
  },
  {
    what: 'a question mark in a list',
    text: inList('a?b'),
    runs: false,
    refusal: /that Kubernetes may split: quote it/,
  },
  { what: 'a quoted one', text: inList('"a?b"'), runs: true },
  { what: 'a name of a field without a space', text: inList('{a:,b}'), runs: false, refusal: /Kubernetes may split/ },
  {
    what: 'an anchor whose name is no word',
    text: withSpec('x: &é a'),
    runs: false,
    refusal: /an anchor whose name is no word/,
  },
]

const documents: readonly KubeletCase[] = [
  { what: 'a comment before the first document', text: `# one\n---\n# two\n${plain}`, runs: true },
  {
    what: 'an empty first document',
    text: `---\n# nothing\n---\n${plain}`,
    runs: false,
    refusal: /line 1, column 1: its first YAML document is empty, and kubelet reads no other/,
  },
  {
    what: 'a first document of null',
    text: `null\n---\n${plain}`,
    runs: false,
    refusal: /first YAML document is empty/,
  },
  { what: 'a first document of another kind', text: `a: 1\n---\n${plain}`, runs: false, refusal: /kind missing/ },
  { what: 'an empty document behind', text: `${plain}---\n`, runs: true },
  { what: 'the end of the document', text: `${plain}...\n# end\n`, runs: true },
  { what: 'nothing', text: '', runs: false, refusal: /it holds no object/ },
  { what: 'a byte order mark', text: `\ufeff${plain}`, runs: true },
  { what: 'JSON', text: json('"hostPID":true'), runs: true },
  { what: 'JSON behind spaces', text: ` \n\t${json('"hostPID":true')}`, runs: true },
  { what: 'JSON behind a byte order mark, which is YAML', text: `\ufeff${json('"hostPID":on')}`, runs: true },
  {
    what: 'JSON with more behind it',
    text: `${json('"hostPID":true')}\n---\n`,
    runs: false,
    refusal: /not valid JSON/,
  },
  { what: 'YAML that starts as JSON does', text: json('"hostPID":on'), runs: false, refusal: /not valid JSON/ },
  {
    what: 'a field twice, in JSON, of which kubelet looks at both',
    text: json('"hostPID":1,"hostPID":true'),
    runs: false,
    refusal: /line 1, column 125: a field stands twice/,
  },
  {
    what: 'a control character',
    text: plain.replace('web}', 'web} # \u0007'),
    runs: false,
    refusal: /line 3, column 25: not valid YAML \(a control/,
  },
]

/** Manifests that kubelet runs, and holdfast refuses with a reason: two readers may take each of these for different pods. */
const stricter: readonly KubeletCase[] = [
  {
    what: 'a second document',
    text: `${plain}---\n${plain}`,
    runs: true,
    refusal: /2 YAML documents, and kubelet reads only the first/,
  },
  {
    what: 'a field twice',
    text: withSpec('hostPID: true\n  hostPID: false'),
    runs: true,
    refusal: /line 7, column 3: a field stands twice/,
  },
  {
    what: 'a field twice, in JSON',
    text: json('"hostPID":false,"hostPID":true'),
    runs: true,
    refusal: /line 1, column \d+: a field stands twice/,
  },
  {
    what: 'a field twice, written differently',
    text: withMetadata('labels: {0x10: a, 16: b}'),
    runs: true,
    refusal: /a field stands twice/,
  },
  {
    what: 'a byte order mark inside of the text',
    text: plain.replace('metadata', '\ufeffmetadata'),
    runs: false,
    refusal: /a byte order mark inside/,
  },
  {
    what: 'a time that is tagged as one',
    text: withMetadata('annotations: {a: !!timestamp 2001-01-01}'),
    runs: true,
    refusal: /a YAML tag that does not fit/,
  },
  {
    what: 'a tag without a value',
    text: withMetadata('annotations: {a: !!str }'),
    runs: true,
    refusal: /a YAML tag without a value/,
  },
  {
    what: 'an exponent in the name of a field',
    text: withMetadata('labels: {1e6: a}'),
    runs: false,
    refusal: /whose name is neither/,
  },
  {
    what: 'a fraction as the name of a field',
    text: withMetadata('labels: {1.5: a}'),
    runs: true,
    refusal: /whose name is neither/,
  },
  {
    what: 'a quantity without a digit',
    text: withContainer('resources: {limits: {cpu: m}}'),
    runs: true,
    refusal: /must be a quantity/,
  },
]

export const kubeletCases: readonly KubeletCase[] = [
  ...texts,
  ...numbers,
  ...shapes,
  ...tags,
  ...places,
  ...documents,
  ...stricter,
]
