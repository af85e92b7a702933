/** Mistakes in the document, in its kind, in its fields and in its source. */
import { broken, type BrokenConfiguration, sound } from '../broken-configuration.js'

const path = 'path: /srv/certs'
const mode = 'mode: "0755"'
const items = '[{ key: ca.crt, path: ca.crt }]'
const source = 'kubernetes: { kubeconfig: ./kubeconfig }'

export const brokenDocuments: readonly BrokenConfiguration[] = [
  // The document.
  broken('nothing at all', sound, '', '1:1: is empty: it must hold an AgentConfiguration'),
  broken('comments only', sound, '# nothing\n', '1:1: is empty: it must hold an AgentConfiguration'),
  broken(
    'two documents',
    'kind: Agent',
    '---\nkind: Agent',
    '2:1: starts another document (the file holds 2): keep one document in the file',
  ),
  broken(
    'a list instead of a mapping',
    sound,
    '- apiVersion: holdfast.dev/v1alpha1\n',
    '1:1: must be a mapping, not a list',
  ),
  broken(
    'a closing bracket forgotten',
    items,
    '[{ key: ca.crt, path: ca.crt ]',
    '13:45: is not valid YAML: a bracket that was opened before is not closed',
  ),
  broken('a tab as indentation', '    mode:', '\tmode:', '8:1: is not valid YAML: a tab is used as indentation'),
  broken(
    'wrong indentation',
    '    mode:',
    '   mode:',
    '8:1: is not valid YAML: the indentation does not match the lines around it',
  ),
  broken(
    'a value that is not closed',
    '"0755"',
    '"0755',
    '8:16: is not valid YAML: a bracket, quote, comma or colon is missing',
  ),
  broken('an unknown alias', mode, 'mode: *mode', '8:11: directories[0].mode: is an unknown alias'),
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
  broken(
    'a field given twice',
    mode,
    'mode: "0755"\n    mode: "0700"',
    '9:5: directories[0].mode: is given twice, first in line 8',
  ),
  broken(
    'a merge key',
    mode,
    '<<: { mode: "0755" }',
    '8:5: directories[0]."<<": merge keys are not supported: use an alias for the whole value',
  ),
  broken('a tag', '"0755"', '!octal "0755"', '8:11: has a YAML tag, which holdfast does not support: remove it'),
  broken(
    'binary',
    '"0755"',
    '!!binary "MDc1NQ=="',
    '8:20: directories[0].mode: has a YAML tag, which holdfast does not support: remove it',
  ),
  broken('YAML 1.1', 'apiVersion', '%YAML 1.1\n---\napiVersion', '1:1: declares YAML 1.1: remove the %YAML line'),
  broken(
    'a field name that is a number',
    mode,
    '755: "0755"',
    '8:5: directories[0]: has a field whose name is not a string',
  ),
  broken('nested without end', mode, `mode: ${'['.repeat(20_000)}`, '8:1: is nested too deeply to be read'),
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
  broken('a misspelt field', 'mode:', 'mdoe:', '8:5: directories[0].mdoe: unknown field: did you mean "mode"?'),
  broken(
    'a field of no sense',
    'mode:',
    'colour:',
    '8:5: directories[0].colour: unknown field: known here: path, publish, adopt, mode, fileMode, owner, attributes, contents, onMissing, onDrop, retire, retireTimeout, history, historyMaxAge, movedFrom, movedFromKeep, debounce, minInterval, hookInterval, limits, validate, beforePublish, afterPublish',
  ),
  broken(
    'a field in the wrong place',
    mode,
    'secret: serving-cert',
    '8:5: directories[0].secret: unknown field: it belongs to one of contents',
  ),
  broken(
    'a field that is no more',
    mode,
    'movedFromAs: link',
    '8:5: directories[0].movedFromAs: unknown field: leave it out: nothing stays at the old path; who needs a link there makes it once the move is done',
  ),
  broken(
    'a misspelt field at the top',
    'directories:',
    'directory:',
    '1:1: directories: is required: write directories: [{ path: /etc/x, contents: [{ secret: NAME }] }]',
    '6:1: directory: unknown field: did you mean "directories"?',
  ),
  broken(
    'a field without a value',
    mode,
    'mode:',
    '8:5: directories[0].mode: has no value: give the field a value, or remove it',
  ),
  broken(
    'a field with a strange name',
    mode,
    '"a\\nb": 1',
    '8:5: directories[0]."a\\nb": unknown field: known here: path, publish, adopt, mode, fileMode, owner, attributes, contents, onMissing, onDrop, retire, retireTimeout, history, historyMaxAge, movedFrom, movedFromKeep, debounce, minInterval, hookInterval, limits, validate, beforePublish, afterPublish',
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
  broken(
    'kubernetes without a value',
    source,
    'kubernetes:',
    '5:3: source.kubernetes: has no value: write kubernetes: {} for the service account',
  ),
  broken(
    'kubeconfig beside kubernetes',
    source,
    'kubernetes: {}\n  kubeconfig: ./kubeconfig',
    '6:3: source.kubeconfig: unknown field: it belongs to kubernetes: write kubernetes: { kubeconfig: … }',
  ),
  broken(
    'a context without kubeconfig',
    source,
    'kubernetes: { context: node }',
    '5:26: source.kubernetes.context: is given without a kubeconfig: the service account of a pod has no contexts',
  ),
  broken(
    'no requests at all',
    source,
    'kubernetes: { qps: 0 }',
    '5:22: source.kubernetes.qps: 0 is out of range: write 1 to 10000',
  ),
  broken(
    'a watch of nothing known',
    source,
    'kubernetes: { watch: namespace }',
    '5:24: source.kubernetes.watch: "namespace" is not one of objects, namespaces: did you mean "namespaces"?',
  ),
  broken(
    'a burst in quotes',
    source,
    'kubernetes: { burst: "30" }',
    '5:24: source.kubernetes.burst: must be a whole number, not a string: write 30, without quotes',
  ),
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
  broken('files without a path', source, 'files: {}', '5:10: source.files.path: is required: write path: ./objects'),
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
