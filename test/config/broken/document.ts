/** Mistakes in the document, in its kind, in its fields and in its source. */
import { broken, brokenAt, type BrokenConfiguration, sound } from '../broken-configuration.js'

const path = 'path: /srv/certs'
const mode = 'mode: "0755"'
const source = 'kubernetes: { kubeconfig: ./kubeconfig }'
const known =
  'known here: path, publish, adopt, mode, fileMode, owner, attributes, contents, onMissing, onDrop, retire, retireTimeout, history, historyMaxAge, movedFrom, movedFromKeep, debounce, minInterval, hookInterval, limits, validate, beforePublish, afterPublish'

export const brokenDocuments: readonly BrokenConfiguration[] = [
  // The document.
  ...brokenAt(sound, '', {
    'nothing at all': ['', 'is empty: it must hold an AgentConfiguration'],
    'comments only': ['# nothing\n', 'is empty: it must hold an AgentConfiguration'],
    'a list instead of a mapping': ['- apiVersion: holdfast.dev/v1alpha1\n', 'must be a mapping, not a list'],
  }),
  ...brokenAt('kind: Agent', '', {
    'two documents': ['---\nkind: Agent', 'starts another document (the file holds 2): keep one document in the file'],
  }),
  broken('YAML 1.1', 'apiVersion', '%YAML 1.1\n---\napiVersion', '1:1: declares YAML 1.1: remove the %YAML line'),
  broken(
    'a closing bracket forgotten',
    '[{ key: ca.crt, path: ca.crt }]',
    '[{ key: ca.crt, path: ca.crt ]',
    '13:45: is not valid YAML: a bracket that was opened before is not closed',
  ),
  ...brokenAt('    mode:', '', {
    'a tab as indentation': ['\tmode:', 'is not valid YAML: a tab is used as indentation'],
    'wrong indentation': ['   mode:', 'is not valid YAML: the indentation does not match the lines around it'],
    'nested without end': [`    mode: ${'['.repeat(20_000)}`, 'is nested too deeply to be read'],
  }),
  ...brokenAt('"0755"', '', {
    'a value that is not closed': ['"0755^', 'is not valid YAML: a bracket, quote, comma or colon is missing'],
    'an unknown alias': ['*mode', 'directories[0].mode: is an unknown alias'],
    'a tag': ['!octal "0755"', 'has a YAML tag, which holdfast does not support: remove it'],
    binary: ['!!binary ^"MDc1NQ=="', 'directories[0].mode: has a YAML tag, which holdfast does not support: remove it'],
  }),
  broken(
    'an anchor on a field name',
    path,
    '&loop contents: [*loop]\n    path: /srv/certs',
    '7:22: directories[0].contents[0]: is an unknown alias',
    '10:5: directories[0].contents: is given twice, first in line 7',
  ),
  broken(
    'an alias that holds itself',
    'contents: [{ secret: other }]',
    'contents: &all [*all]',
    '19:21: directories[1].contents[0]: is an alias of a value that contains it',
  ),
  // Version and kind.
  broken(
    'no apiVersion',
    'apiVersion: holdfast.dev/v1alpha1\n',
    '',
    '1:1: apiVersion: is required: write apiVersion: holdfast.dev/v1alpha1',
  ),
  broken(
    'another apiVersion',
    'v1alpha1',
    'v1',
    '1:13: apiVersion: "holdfast.dev/v1" is not known: write apiVersion: holdfast.dev/v1alpha1',
  ),
  broken(
    'another kind',
    'AgentConfiguration',
    'KubeletConfiguration',
    '2:7: kind: "KubeletConfiguration" is not known: write kind: AgentConfiguration',
  ),
  // Fields.
  ...brokenAt(mode, 'directories[0]', {
    'a misspelt field': ['mdoe: "0755"', '.mdoe: unknown field: did you mean "mode"?'],
    'a field of no sense': ['colour: "0755"', `.colour: unknown field: ${known}`],
    'a field with a strange name': ['"a\\nb": 1', `."a\\nb": unknown field: ${known}`],
    'a field name that is a number': ['755: "0755"', ': has a field whose name is not a string'],
    'a field in the wrong place': ['secret: serving-cert', '.secret: unknown field: it belongs to one of contents'],
    'a field that is no more': [
      'movedFromAs: link',
      '.movedFromAs: unknown field: leave it out: nothing stays at the old path; who needs a link there makes it once the move is done',
    ],
    'a field without a value': ['mode:', '.mode: has no value: give the field a value, or remove it'],
    'a field given twice': ['mode: "0755"\n    ^mode: "0700"', '.mode: is given twice, first in line 8'],
    'a merge key': ['<<: { mode: "0755" }', '."<<": merge keys are not supported: use an alias for the whole value'],
  }),
  broken(
    'a misspelt field at the top',
    'directories:',
    'directory:',
    '1:1: directories: is required: write directories: [{ path: /etc/x, contents: [{ secret: NAME }] }]',
    '6:1: directory: unknown field: did you mean "directories"?',
  ),
  // Source.
  broken(
    'no source',
    `source:\n  namespace: kube-system\n  ${source}\n`,
    '',
    '1:1: source: is required: write source: { kubernetes: {} }',
  ),
  broken(
    'two sources',
    source,
    `${source}\n  files: { path: ./objects }`,
    '4:3: source: has both kubernetes and files: give exactly one of kubernetes, files',
  ),
  broken('no kind of source', source, '', '4:3: source: is incomplete: give exactly one of kubernetes, files'),
  ...brokenAt(source, 'source.', {
    'kubernetes without a value': [
      'kubernetes:',
      'kubernetes: has no value: write kubernetes: {} for the service account',
    ],
    'kubeconfig beside kubernetes': [
      'kubernetes: {}\n  ^kubeconfig: ./kubeconfig',
      'kubeconfig: unknown field: it belongs to kubernetes: write kubernetes: { kubeconfig: … }',
    ],
    'a context without kubeconfig': [
      'kubernetes: { context: ^node }',
      'kubernetes.context: is given without a kubeconfig: the service account of a pod has no contexts',
    ],
    'no requests at all': ['kubernetes: { qps: ^0 }', 'kubernetes.qps: 0 is out of range: write 1 to 10000'],
    'a watch of nothing known': [
      'kubernetes: { watch: ^namespace }',
      'kubernetes.watch: "namespace" is not one of objects, namespaces: did you mean "namespaces"?',
    ],
    'a burst in quotes': [
      'kubernetes: { burst: ^"30" }',
      'kubernetes.burst: must be a whole number, not a string: write 30, without quotes',
    ],
    'files without a path': ['files: ^{}', 'files.path: is required: write path: ./objects'],
  }),
  broken(
    'a namespace in upper case',
    'namespace: kube-system',
    'namespace: Kube-System',
    '4:14: source.namespace: "Kube-System" is not a namespace: it is lower-case letters, digits and \'-\', at most 63',
  ),
  broken(
    'no namespace',
    '  namespace: kube-system\n',
    '',
    '9:17: directories[0].contents[0].secret: "serving-cert" has no namespace: write NAMESPACE/serving-cert, or set source.namespace',
    '11:20: directories[0].contents[1].configMap: "ca-bundle" has no namespace: write NAMESPACE/ca-bundle, or set source.namespace',
    '14:26: directories[0].contents[2].from[0].secret: "serving-cert" has no namespace: write NAMESPACE/serving-cert, or set source.namespace',
    '18:26: directories[1].contents[0].secret: "other" has no namespace: write NAMESPACE/other, or set source.namespace',
  ),
  broken(
    'objects inside a target',
    source,
    'files: { path: /srv/certs/objects }',
    '7:11: directories[0].path: "/srv/certs" holds source.files.path, "/srv/certs/objects": it would be replaced too',
  ),
  broken(
    'another way to reload',
    'source:',
    'reload: always\nsource:',
    '3:9: reload: "always" is not one of signal, auto',
  ),
]
