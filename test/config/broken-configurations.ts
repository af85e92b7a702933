/** A configuration in which nothing is wrong, and what each mistake in it is answered with. */

export const sound = `apiVersion: holdfast.dev/v1alpha1
kind: AgentConfiguration
source:
  namespace: kube-system
  kubernetes: { kubeconfig: ./kubeconfig }
directories:
  - path: /srv/certs
    mode: "0755"
    contents:
      - secret: serving-cert
        into: secrets/serving-cert
      - configMap: ca-bundle
        items: [{ key: ca.crt, path: ca.crt }]
      - combine: server.pem
        from: [{ secret: serving-cert, key: tls.key }]
    afterPublish:
      - signal: { name: SIGHUP, pidFile: /run/x.pid }
  - path: ./second
    contents: [{ secret: other }]
server: { address: "127.0.0.1:10808" }
`

export interface BrokenConfiguration {
  readonly mistake: string
  /** What is written in place of what. */
  readonly replace: readonly (readonly [string, string])[]
  /** Each line of the message, without the file's name and the colon after it. */
  readonly lines: readonly string[]
}

function broken(mistake: string, was: string, is: string, ...lines: string[]): BrokenConfiguration {
  return { mistake, replace: [[was, is]], lines }
}

const path = 'path: /srv/certs'
const mode = 'mode: "0755"'
const secret = 'secret: serving-cert\n'
const into = 'into: secrets/serving-cert'
const items = '[{ key: ca.crt, path: ca.crt }]'
const from = '[{ secret: serving-cert, key: tls.key }]'
const hook = 'signal: { name: SIGHUP, pidFile: /run/x.pid }'
const address = '"127.0.0.1:10808"'
const source = 'kubernetes: { kubeconfig: ./kubeconfig }'

export const brokenConfigurations: readonly BrokenConfiguration[] = [
  broken(
    'a signal that nobody can take',
    'name: SIGHUP',
    'name: SIGKILL',
    '17:25: directories[0].afterPublish[0].signal.name: SIGKILL notifies nobody: it only ends or stops a process: write as in "SIGHUP"',
  ),
  broken(
    'a signal that is none',
    'name: SIGHUP',
    'name: SIGFOO',
    '17:25: directories[0].afterPublish[0].signal.name: "SIGFOO" is not a signal: write as in "SIGHUP", "SIGUSR1"',
  ),
  broken(
    'a path that only a shell understands',
    path,
    'path: ~/certs',
    `7:11: directories[0].path: "~/certs" starts with '~', which no shell replaces here: write the path itself`,
  ),
  broken(
    'a path with a variable',
    path,
    'path: /srv/${NODE}/certs',
    '7:11: directories[0].path: "/srv/${NODE}/certs" holds a variable, which nothing replaces here: write the path itself',
  ),
  broken(
    'a path as a URL',
    path,
    'path: file:///srv/certs',
    '7:11: directories[0].path: "file:///srv/certs" is a URL: write the path itself',
  ),
  broken(
    'a choice of words, answered with another kind of value',
    path,
    `${path}\n    publish: true`,
    '8:14: directories[0].publish: must be one of exchange, symlink, not a boolean',
  ),
  broken(
    'no, as YAML 1.1 had it',
    path,
    `${path}\n    adopt: no`,
    '8:12: directories[0].adopt: must be true or false, not a string: write false, without quotes',
  ),
  broken(
    'an IPv6 address and its port, without brackets',
    address,
    '"::1:80"',
    '20:20: server.address: "::1:80" is not HOST:PORT: write "[::1]:80"',
  ),
  broken(
    'a negative owner',
    path,
    `${path}\n    owner: "-1:0"`,
    '8:12: directories[0].owner: "-1:0" is not UID:GID: write numbers, as in "0:0"',
  ),
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
  broken('nested without end', mode, `mode: ${'['.repeat(20_000)}`, '8:796: is nested too deeply to be read'),
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
    '8:5: directories[0].colour: unknown field: known here: path, publish, adopt, mode, fileMode, owner, contents, onMissing, validate, afterPublish',
  ),
  broken(
    'a field in the wrong place',
    mode,
    'secret: serving-cert',
    '8:5: directories[0].secret: unknown field: it belongs to one of contents',
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
    '8:5: directories[0].mode: has no value: give it one, or remove the field',
  ),
  broken(
    'a field with a strange name',
    mode,
    '"a\\nb": 1',
    '8:5: directories[0]."a\\nb": unknown field: known here: path, publish, adopt, mode, fileMode, owner, contents, onMissing, validate, afterPublish',
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
  // Targets.
  broken(
    'no directories',
    sound.slice(sound.indexOf('directories'), sound.indexOf('server: ')),
    'directories: []\n',
    '6:14: directories: is an empty list',
  ),
  broken('no path', `${path}\n    `, '', '7:5: directories[0].path: is required: write path: /etc/kubernetes/certs'),
  broken(
    'a path that is a number',
    path,
    'path: 12',
    '7:11: directories[0].path: must be a string, not a number: quote it, "12"',
  ),
  broken(
    'the root',
    path,
    'path: /',
    '7:11: directories[0].path: "/" is a directory of the system: name a directory of its own below it',
  ),
  broken(
    'the root by detours',
    path,
    'path: /srv/../.',
    '7:11: directories[0].path: "/" is a directory of the system: name a directory of its own below it',
  ),
  broken(
    '/etc',
    path,
    'path: /etc/',
    '7:11: directories[0].path: "/etc" is a directory of the system: name a directory of its own below it',
  ),
  broken(
    '/var/lib',
    path,
    'path: /var/lib',
    '7:11: directories[0].path: "/var/lib" is a directory of the system: name a directory of its own below it',
  ),
  broken(
    'below /proc',
    path,
    'path: /proc/1/x',
    '7:11: directories[0].path: "/proc/1/x" is in /proc, which keeps nothing: name a directory on a disk',
  ),
  broken(
    "kubelet's manifests",
    path,
    'path: /etc/kubernetes/manifests',
    '7:11: directories[0].path: "/etc/kubernetes/manifests" is watched by kubelet, which would not see a replaced directory: publish beside it',
  ),
  broken(
    "a name as holdfast's own",
    path,
    'path: /srv/.holdfast-0011',
    '7:11: directories[0].path: "/srv/.holdfast-0011" has a name as holdfast\'s own files have: choose another',
  ),
  broken(
    'the same target twice',
    './second',
    '/srv//certs/',
    '18:11: directories[1].path: "/srv/certs" is the target of directories[0] already: give one directory all the contents',
  ),
  broken(
    'the same target by a relative path',
    path,
    'path: /configurations/../configurations/second',
    '18:11: directories[1].path: "/configurations/second" is the target of directories[0] already: give one directory all the contents',
  ),
  broken(
    'a target in a target',
    './second',
    '/srv/certs/inner',
    '18:11: directories[1].path: "/srv/certs/inner" is inside the target of directories[0]: give one directory all the contents, with into',
  ),
  broken(
    'a target around a target',
    './second',
    '/srv',
    '18:11: directories[1].path: "/srv" is a directory of the system: name a directory of its own below it',
  ),
  broken(
    'stateDirectory inside a target',
    'source:\n',
    'stateDirectory: /srv/certs/state\nsource:\n',
    '8:11: directories[0].path: "/srv/certs" holds stateDirectory, "/srv/certs/state": it would be replaced too',
  ),
  broken(
    'the configuration inside a target',
    './second',
    '.',
    '18:11: directories[1].path: "/configurations" holds this configuration file, "/configurations/holdfast.yaml": it would be replaced too',
  ),
  broken(
    'a name too long',
    path,
    `path: /srv/${'x'.repeat(256)}`,
    '7:11: directories[0].path: has a part longer than 255 bytes',
  ),
  broken(
    'publish misspelt',
    mode,
    'publish: exchagne',
    '8:14: directories[0].publish: "exchagne" is not one of exchange, symlink: did you mean "exchange"?',
  ),
  broken(
    'onMissing of no sense',
    mode,
    'onMissing: ignore',
    '8:16: directories[0].onMissing: "ignore" is not one of keep, remove',
  ),
  broken(
    'adopt as a word',
    mode,
    'adopt: "yes"',
    '8:12: directories[0].adopt: must be true or false, not a string: write true, without quotes',
  ),
  broken(
    'validate misspelt',
    mode,
    'validate: [certificate]',
    '8:16: directories[0].validate[0]: "certificate" is not one of certificates: did you mean "certificates"?',
  ),
  broken(
    'validate as a word',
    mode,
    'validate: certificates',
    '8:15: directories[0].validate: must be a list, not a string',
  ),
  // Modes and owners.
  broken(
    'a mode without quotes',
    '"0755"',
    '0755',
    '8:11: directories[0].mode: 0755 is a number (755 in YAML 1.2): write it as a string, "0755"',
  ),
  broken(
    'a mode without quotes and zero',
    '"0755"',
    '755',
    '8:11: directories[0].mode: 755 is a number: write it as a string, "0755"',
  ),
  broken(
    'an octal number',
    '"0755"',
    '0o755',
    '8:11: directories[0].mode: 0o755 is a number (493 in YAML 1.2): write it as a string, "0755"',
  ),
  broken(
    'a decimal mode',
    '"0755"',
    '493',
    '8:11: directories[0].mode: 493 is a number: write octal digits as a string, as in "0755"',
  ),
  broken(
    'a mode of letters',
    '"0755"',
    'rwxr-xr-x',
    '8:11: directories[0].mode: "rwxr-xr-x" is not a mode: write octal digits, as in "0755"',
  ),
  broken(
    'a mode of too many digits',
    '"0755"',
    '"007555"',
    '8:11: directories[0].mode: "007555" is not a mode: write octal digits, as in "0755"',
  ),
  broken(
    'a set-user-ID directory',
    '"0755"',
    '"4755"',
    '8:11: directories[0].mode: "4755" has bits that are not allowed here: at most "3777"',
  ),
  broken(
    'a file with more than permissions',
    mode,
    'fileMode: "1644"',
    '8:15: directories[0].fileMode: "1644" has bits that are not allowed here: at most "0777"',
  ),
  broken(
    'an owner by name',
    mode,
    'owner: root:root',
    '8:12: directories[0].owner: "root:root" has a name: write numbers, as in "0:0": the names of a container are not the host\'s',
  ),
  broken(
    'an owner without a group',
    mode,
    'owner: 0',
    '8:12: directories[0].owner: 0 is a number: write a string of user and group, "0:0"',
  ),
  broken(
    'an owner of three',
    mode,
    'owner: "0:0:0"',
    '8:12: directories[0].owner: "0:0:0" is not UID:GID: write numbers, as in "0:0"',
  ),
  broken(
    'an owner that is no owner',
    mode,
    'owner: "4294967295:0"',
    '8:12: directories[0].owner: "4294967295:0" is out of range: at most 4294967294',
  ),
  // Contents.
  broken(
    'contents as a mapping',
    'contents: [{ secret: other }]',
    'contents: { secret: other }',
    '19:15: directories[1].contents: must be a list, not a mapping',
  ),
  broken(
    'no contents',
    'contents: [{ secret: other }]',
    'contents: []',
    '19:15: directories[1].contents: is an empty list',
  ),
  broken(
    'a secret and a configMap',
    secret,
    'secret: serving-cert\n        configMap: ca-bundle\n',
    '10:9: directories[0].contents[0]: has both secret and configMap: give exactly one of secret, configMap, combine',
  ),
  broken(
    'neither',
    secret,
    'optional: true\n',
    '10:9: directories[0].contents[0]: is incomplete: give exactly one of secret, configMap, combine',
  ),
  broken(
    'a name in upper case',
    secret,
    'secret: Serving-Cert\n',
    "10:17: directories[0].contents[0].secret: \"Serving-Cert\" is not the name of a Secret: it is lower-case letters, digits, '-' and '.', at most 253",
  ),
  broken(
    'a name that climbs',
    secret,
    'secret: ../serving-cert\n',
    '10:17: directories[0].contents[0].secret: ".." is not a namespace: it is lower-case letters, digits and \'-\', at most 63',
  ),
  broken(
    'a namespace of no sense',
    secret,
    'secret: a_b/serving-cert\n',
    '10:17: directories[0].contents[0].secret: "a_b" is not a namespace: it is lower-case letters, digits and \'-\', at most 63',
  ),
  broken(
    'a name of three parts',
    secret,
    'secret: a/b/c\n',
    '10:17: directories[0].contents[0].secret: "a/b/c" has more than one \'/\': write NAMESPACE/NAME or NAME',
  ),
  broken(
    'into that climbs',
    into,
    'into: ../other',
    '11:15: directories[0].contents[0].into: "../other" climbs with \'..\': name a path inside the target',
  ),
  broken(
    'into that climbs later',
    into,
    'into: a/../../b',
    '11:15: directories[0].contents[0].into: "a/../../b" climbs with \'..\': name a path inside the target',
  ),
  broken(
    'an absolute into',
    into,
    'into: /secrets',
    '11:15: directories[0].contents[0].into: "/secrets" is absolute: name a path inside the target',
  ),
  broken(
    'into with a trailing slash',
    into,
    'into: secrets/',
    '11:15: directories[0].contents[0].into: "secrets/" has an empty or \'.\' part: write "secrets"',
  ),
  broken(
    'into with a dot',
    into,
    'into: ./secrets',
    '11:15: directories[0].contents[0].into: "./secrets" has an empty or \'.\' part: write "secrets"',
  ),
  broken(
    'an item that climbs',
    items,
    '[{ key: ca.crt, path: ../ca.crt }]',
    '13:38: directories[0].contents[1].items[0].path: "../ca.crt" climbs with \'..\': name a path inside the target',
  ),
  broken(
    'an item that is the directory',
    items,
    '[{ key: ca.crt, path: . }]',
    '13:38: directories[0].contents[1].items[0].path: "." has an empty or \'.\' part: name a path inside the target',
  ),
  broken(
    'an item without a path',
    items,
    '[{ key: ca.crt }]',
    '13:17: directories[0].contents[1].items[0].path: is required: write path: ca.crt',
  ),
  broken(
    'an item without a key',
    items,
    '[{ path: ca.crt }]',
    '13:17: directories[0].contents[1].items[0].key: is required: write key: tls.crt',
  ),
  broken(
    'an item as a word',
    items,
    '[ca.crt]',
    '13:17: directories[0].contents[1].items[0]: must be a mapping, not a string',
  ),
  broken(
    'a key with a slash',
    items,
    '[{ key: a/b, path: ca.crt }]',
    "13:24: directories[0].contents[1].items[0].key: \"a/b\" is not a key: it is letters, digits, '-', '_' and '.', at most 253, and does not start with '..'",
  ),
  broken('no items', items, '[]', '13:16: directories[0].contents[1].items: is an empty list'),
  broken(
    'two items of one file',
    items,
    '[{ key: a, path: ca.crt }, { key: b, path: ca.crt }]',
    '13:59: directories[0].contents[1].items[1].path: "ca.crt" is written twice, first by directories[0].contents[1].items[0].path',
  ),
  broken(
    'an item and a combined file',
    items,
    '[{ key: a, path: server.pem }]',
    '14:18: directories[0].contents[2].combine: "server.pem" is written twice, first by directories[0].contents[1].items[0].path',
  ),
  broken(
    'a file that is a directory',
    items,
    '[{ key: a, path: secrets }]',
    '13:33: directories[0].contents[1].items[0].path: "secrets" is a file here, and a directory for directories[0].contents[0].into',
  ),
  broken(
    'a file below a file',
    items,
    '[{ key: a, path: x }, { key: b, path: x/y }]',
    '13:54: directories[0].contents[1].items[1].path: "x" is a directory here, and a file for directories[0].contents[1].items[0].path',
  ),
  broken(
    'a combined file that is a directory',
    'server.pem',
    'secrets/serving-cert',
    '14:18: directories[0].contents[2].combine: "secrets/serving-cert" is a file here, and a directory for directories[0].contents[0].into',
  ),
  broken(
    'the same object twice',
    secret,
    `secret: serving-cert\n      - secret: kube-system/serving-cert\n      - ${secret}`,
    '11:9: directories[0].contents[1]: writes every key of Secret kube-system/serving-cert again, as directories[0].contents[0] does',
  ),
  {
    mistake: '..data in symlink mode',
    replace: [
      [mode, 'publish: symlink'],
      [items, '[{ key: a, path: ..data/x }]'],
    ],
    lines: [
      '13:33: directories[0].contents[1].items[0].path: "..data" is reserved with publish: symlink: choose a name that does not start with \'..\'',
    ],
  },
  broken('from nothing', from, '[]', '15:15: directories[0].contents[2].from: is an empty list'),
  broken(
    'from without a key',
    from,
    '[{ secret: serving-cert }]',
    '15:16: directories[0].contents[2].from[0].key: is required: write key: tls.crt',
  ),
  broken(
    'from neither',
    from,
    '[{ key: tls.key }]',
    '15:16: directories[0].contents[2].from[0]: is incomplete: give exactly one of secret, configMap',
  ),
  broken(
    'into with combine',
    from,
    `${from}\n        into: x`,
    '16:9: directories[0].contents[2].into: unknown field: write it as part of combine',
  ),
  broken(
    'optional in from',
    from,
    '[{ secret: serving-cert, key: tls.key, optional: true }]',
    '15:54: directories[0].contents[2].from[0].optional: unknown field: the whole combined file is optional or not',
  ),
  // Hooks.
  broken(
    'a hook of two kinds',
    hook,
    `${hook}\n        exec: [/bin/true]`,
    '17:9: directories[0].afterPublish[0]: has both signal and exec: give exactly one of signal, exec, http',
  ),
  broken(
    'a hook of no kind',
    hook,
    'timeout: 10s',
    '17:9: directories[0].afterPublish[0]: is incomplete: give exactly one of signal, exec, http',
  ),
  broken(
    'a signal that is not one',
    hook,
    'signal: { name: SIGHUPP, pidFile: /run/x.pid }',
    '17:25: directories[0].afterPublish[0].signal.name: "SIGHUPP" is not a signal: did you mean "SIGHUP"?',
  ),
  broken(
    'a relative pidFile',
    hook,
    'signal: { name: HUP, pidFile: x.pid }',
    '17:39: directories[0].afterPublish[0].signal.pidFile: "x.pid" is not an absolute path',
  ),
  broken(
    'no pidFile',
    hook,
    'signal: { name: HUP }',
    '17:17: directories[0].afterPublish[0].signal.pidFile: is required: write pidFile: /run/NAME.pid',
  ),
  broken(
    'a shell line',
    hook,
    'exec: systemctl reload x',
    '17:15: directories[0].afterPublish[0].exec: is one string: write a list, ["/usr/bin/systemctl", "reload", "x"]: there is no shell',
  ),
  broken(
    'a relative command',
    hook,
    'exec: [systemctl, reload, x]',
    '17:16: directories[0].afterPublish[0].exec[0]: "systemctl" is not an absolute path',
  ),
  broken('an empty command', hook, 'exec: []', '17:15: directories[0].afterPublish[0].exec: is an empty list'),
  broken(
    'a number as an argument',
    hook,
    'exec: [/bin/sleep, 10]',
    '17:28: directories[0].afterPublish[0].exec[1]: is not a string: quote each argument',
  ),
  broken(
    'a URL that is not one',
    hook,
    'http: { url: "127.0.0.1:9000" }',
    '17:22: directories[0].afterPublish[0].http.url: is not a URL: write as in "http://127.0.0.1:9000/reload"',
  ),
  broken(
    'a URL of another kind',
    hook,
    'http: { url: "ftp://127.0.0.1/" }',
    '17:22: directories[0].afterPublish[0].http.url: is not an http or https URL: write as in "http://127.0.0.1:9000/reload"',
  ),
  broken(
    'a URL with credentials',
    hook,
    'http: { url: "http://root:hunter2@127.0.0.1/" }',
    '17:22: directories[0].afterPublish[0].http.url: holds credentials: remove them: this file is not a place for secrets',
  ),
  broken(
    'a URL with a fragment',
    hook,
    'http: { url: "http://127.0.0.1/#hunter2" }',
    "17:22: directories[0].afterPublish[0].http.url: has a fragment: remove what follows '#': it is never sent",
  ),
  broken(
    'a method of no sense',
    hook,
    'http: { url: "http://127.0.0.1/", method: RELOAD }',
    '17:51: directories[0].afterPublish[0].http.method: "RELOAD" is not one of POST, GET, PUT, PATCH, DELETE, HEAD',
  ),
  broken(
    'a timeout without a unit',
    hook,
    `${hook}\n        timeout: 10`,
    '18:18: directories[0].afterPublish[0].timeout: 10 has no unit: write "10s" for seconds',
  ),
  broken(
    'a timeout of no sense',
    hook,
    `${hook}\n        timeout: soon`,
    '18:18: directories[0].afterPublish[0].timeout: "soon" is not a duration: write as in "10s", "1m30s", "500ms"',
  ),
  broken(
    'a timeout of nothing',
    hook,
    `${hook}\n        timeout: 0s`,
    '18:18: directories[0].afterPublish[0].timeout: "0s" is out of range: write 1ms to 1h',
  ),
  broken(
    'a timeout in the wrong place',
    hook,
    'exec: [/bin/true]\n      - signal: { name: HUP, pidFile: /x, timeout: 1s }',
    '18:43: directories[0].afterPublish[1].signal.timeout: unknown field: it belongs to the hook, beside its type',
  ),
  broken(
    'negative retries',
    hook,
    `${hook}\n        retries: -1`,
    '18:18: directories[0].afterPublish[0].retries: -1 is out of range: write 0 to 100',
  ),
  broken(
    'retries as a string',
    hook,
    `${hook}\n        retries: "3"`,
    '18:18: directories[0].afterPublish[0].retries: must be a whole number, not a string: write 3, without quotes',
  ),
  broken(
    'retries as a fraction',
    hook,
    `${hook}\n        retries: 1.5`,
    '18:18: directories[0].afterPublish[0].retries: must be a whole number, not 1.5',
  ),
  // Server.
  broken(
    'no port',
    address,
    '127.0.0.1',
    '20:20: server.address: "127.0.0.1" is not HOST:PORT: write as in "127.0.0.1:10808"',
  ),
  broken(
    'a port too high',
    address,
    '"127.0.0.1:65536"',
    '20:20: server.address: "127.0.0.1:65536" has a port above 65535',
  ),
  broken(
    'no host',
    address,
    '":10808"',
    '20:20: server.address: ":10808" has no host: write "127.0.0.1:10808", or "[::]:10808" for every interface',
  ),
  broken(
    'IPv6 without brackets',
    address,
    '"::1"',
    '20:20: server.address: "::1" is not HOST:PORT: write "[::1]:10808"',
  ),
  broken(
    'brackets around IPv4',
    address,
    '"[127.0.0.1]:80"',
    '20:20: server.address: "127.0.0.1" is not an IPv6 address',
  ),
  broken('a host that is not one', address, '"999.1.1.1:80"', '20:20: server.address: "999.1.1.1" is not a host'),
  broken(
    'server as a string',
    '{ address: "127.0.0.1:10808" }',
    '"127.0.0.1:10808"',
    '20:9: server: must be a mapping, not a string',
  ),
  // Several at once.
  {
    mistake: 'all of it',
    replace: [
      ['mode: "0755"', 'mode: 0755'],
      ['secrets/serving-cert', '../x'],
      ['SIGHUP', 'SIGHUB'],
      ['"127.0.0.1:10808"', '10808'],
      ['kind:', 'kin:'],
    ],
    lines: [
      '1:1: kind: is required: write kind: AgentConfiguration',
      '2:1: kin: unknown field: did you mean "kind"?',
      '8:11: directories[0].mode: 0755 is a number (755 in YAML 1.2): write it as a string, "0755"',
      '11:15: directories[0].contents[0].into: "../x" climbs with \'..\': name a path inside the target',
      '17:25: directories[0].afterPublish[0].signal.name: "SIGHUB" is not a signal: did you mean "SIGHUP"?',
      '20:20: server.address: must be a string, not a number: write as in "127.0.0.1:10808"',
    ],
  },
]

export function apply({ replace }: BrokenConfiguration): string {
  return replace.reduce((text, [was, is]) => {
    const at = text.indexOf(was)
    if (at < 0) throw new Error(`the sound configuration does not hold: ${was}`)
    return text.slice(0, at) + is + text.slice(at + was.length)
  }, sound)
}
