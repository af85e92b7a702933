/** Manifests, with what kubelet's decoder makes of each: test/e2e/kubelet-decode.test.ts lets kubelet's own code say so. */
import {
  json,
  plain,
  refused,
  runs,
  stricter,
  withContainer,
  withMetadata,
  withSpec,
  type KubeletCase,
} from './kubelet-case.js'
import { numbers, texts } from './kubelet-scalar-cases.js'

const shapes: readonly KubeletCase[] = [
  refused('ports in no list', withContainer('ports: {containerPort: 80}'), /ports must be a list/),
  refused('labels in a list', withMetadata('labels: [a]'), /metadata\.labels must be a map/),
  runs('an unknown field of any type', withSpec('value: [8080, {path: 5}]')),
  runs(
    'the unknown volume source of a known pod',
    withSpec('volumes: [{name: conf-dir, empty-dir: {}}, {name: other, other: {path: 5}}]'),
  ),
  refused(
    'an unknown source of a projected volume',
    withSpec('volumes: [{name: data, projected: {sources: [{other: {}}]}}]'),
    /projected\.sources\[0\]\.downwardAPI is missing: a static pod may have no other source/,
  ),
  runs('a time', withMetadata('creationTimestamp: 2020-02-29T10:20:30Z')),
  refused('no time', withMetadata('creationTimestamp: 2020-02-30T10:20:30Z'), /must be a time/),
  runs('a number as the name of a field', withMetadata('labels: {0x10: a, on: b, 8: c}')),
  refused('nothing as the name of a field', withSpec('? \n  : a'), /whose name is neither/),
  runs(
    'a merge',
    `${withContainer('args: &args [a]')}  initContainers: [{<<: {stdin: yes, name: x}, name: first, image: b}]\n`,
  ),
  refused('a merge of no mapping', withContainer('<<: [a]'), /a merge key/),
]

const tags: readonly KubeletCase[] = [
  refused('a float that is tagged as an integer', withSpec('terminationGracePeriodSeconds: !!int 1e3'), /a YAML tag/),
  runs('an integer that is tagged as one', withSpec('terminationGracePeriodSeconds: !!int "0x1_0"')),
  runs('a number that is tagged as text', withMetadata('annotations: {a: !!str 8080}')),
  runs('bytes as text', withMetadata('annotations: {a: !!binary aGk=}')),
  refused(
    'bytes that are none',
    withMetadata('annotations: {a: !!binary "?"}'),
    /line 3, column 49: a !!binary value that is not base64/,
  ),
  runs('an unknown tag, which makes text', withMetadata('annotations: {a: !mine 80, b: ! 80}')),
  runs('a tag of a mapping', withMetadata('annotations: !!omap {a: b}')),
  refused('a tag up to the end of the list', withMetadata('finalizers: [!!str]'), /a YAML tag/),
]

const inList = (item: string): string => withContainer(`args: [${item}]`)

/** Places that YAML 1.2 reads in another way than kubelet. */
const places: readonly KubeletCase[] = [
  refused('a line of a tab', plain.replace('metadata', '\t\nmetadata'), /line 3, column 1: not valid YAML \(a tab\)/),
  runs('a tab in a block of text', withSpec('x: |\n    a\n    \tb')),
  runs('a tab at the end of a line', plain.replace('metadata:', 'metadata:\t')),
  refused('a carriage return in a line', withContainer('args: [a\rb: c]'), /ends a line to Kubernetes alone/),
  stricter('lines that end with a carriage return', plain.replaceAll('\n', '\r'), /ends a line to Kubernetes alone/),
  stricter('U+0085 at the end of a line', plain.replace('Pod\n', 'Pod\u0085'), /ends a line to Kubernetes alone/),
  stricter('a version of YAML', `%YAML 1.1\n---\n${plain}`, /line 1, column 1: a directive \(%\): remove it/),
  stricter('a line separator in a line', withSpec('x:\n   \u2028hostPID: true'), /ends a line to Kubernetes alone/),
  refused(
    'a character in the two halves that JSON has of it',
    inList(String.raw`"\ud83d\ude00"`),
    /line 6, column \d+: an escape \(\\\) that Kubernetes does not know: write the character itself/,
  ),
  refused('the escaped slash of JSON', inList(String.raw`"\/"`), /an escape/),
  runs('other escapes', inList(String.raw`"it\'s \U0001f600\x41"`)),
  refused('a question mark in a list', inList('a?b'), /that Kubernetes may split: quote it/),
  runs('a quoted one', inList('"a?b"')),
  refused('a name of a field without a space', inList('{a:,b}'), /Kubernetes may split/),
  refused('an anchor whose name is no word', withSpec('x: &é a'), /an anchor whose name is no word/),
]

const documents: readonly KubeletCase[] = [
  runs('a comment before the first document', `# one\n---\n# two\n${plain}`),
  refused(
    'an empty first document',
    `---\n# nothing\n---\n${plain}`,
    /line 1, column 1: its first YAML document is empty, and kubelet reads no other/,
  ),
  refused('a first document of null', `null\n---\n${plain}`, /first YAML document is empty/),
  refused('a first document of another kind', `a: 1\n---\n${plain}`, /kind missing/),
  runs('an empty document behind', `${plain}---\n`),
  runs('the end of the document', `${plain}...\n# end\n`),
  refused('nothing', '', /it holds no object/),
  runs('a byte order mark', `\ufeff${plain}`),
  runs('JSON', json('"hostPID":true')),
  runs('JSON behind spaces', ` \n\t${json('"hostPID":true')}`),
  runs('JSON behind a byte order mark, which is YAML', `\ufeff${json('"hostPID":on')}`),
  refused('JSON with more behind it', `${json('"hostPID":true')}\n---\n`, /not valid JSON/),
  refused('YAML that starts as JSON does', json('"hostPID":on'), /not valid JSON/),
  refused(
    'a field twice, in JSON, of which kubelet looks at both',
    json('"hostPID":1,"hostPID":true'),
    /line 1, column 125: a field stands twice/,
  ),
  refused(
    'a control character',
    plain.replace('web}', 'web} # \u0007'),
    /line 3, column 25: not valid YAML \(a control/,
  ),
]

/** Manifests that kubelet runs, and holdfast refuses with a reason: two readers may take each of these for different pods. */
const ambiguous: readonly KubeletCase[] = [
  stricter('a second document', `${plain}---\n${plain}`, /2 YAML documents, and kubelet reads only the first/),
  stricter('a field twice', withSpec('hostPID: true\n  hostPID: false'), /line 7, column 3: a field stands twice/),
  stricter(
    'a field twice, in JSON',
    json('"hostPID":false,"hostPID":true'),
    /line 1, column \d+: a field stands twice/,
  ),
  stricter('a field twice, written differently', withMetadata('labels: {0x10: a, 16: b}'), /a field stands twice/),
  refused(
    'a byte order mark inside of the text',
    plain.replace('metadata', '\ufeffmetadata'),
    /a byte order mark inside/,
  ),
  stricter(
    'a time that is tagged as one',
    withMetadata('annotations: {a: !!timestamp 2001-01-01}'),
    /a YAML tag that does not fit/,
  ),
  stricter('a tag without a value', withMetadata('annotations: {a: !!str }'), /a YAML tag without a value/),
  refused('an exponent in the name of a field', withMetadata('labels: {1e6: a}'), /whose name is neither/),
  stricter('a fraction as the name of a field', withMetadata('labels: {1.5: a}'), /whose name is neither/),
  stricter('a quantity without a digit', withContainer('resources: {limits: {cpu: m}}'), /must be a quantity/),
]

export const kubeletCases: readonly KubeletCase[] = [
  ...texts,
  ...numbers,
  ...shapes,
  ...tags,
  ...places,
  ...documents,
  ...ambiguous,
]
