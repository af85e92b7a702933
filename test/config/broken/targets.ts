/** Mistakes in targets, their modes and owners. */
import { broken, brokenAt, type BrokenConfiguration, sound } from '../broken-configuration.js'

export const brokenTargets: readonly BrokenConfiguration[] = [
  broken(
    'no directories',
    sound.slice(sound.indexOf('directories'), sound.indexOf('server: ')),
    'directories: []\n',
    '6:14: directories: is an empty list',
  ),
  broken(
    'no path',
    'path: /srv/certs\n    ',
    '',
    '7:5: directories[0].path: is required: write path: /etc/kubernetes/certs',
  ),
  ...brokenAt('/srv/certs', 'directories[0].path: ', {
    'a path that is a number': ['12', 'must be a string, not a number: quote it, "12"'],
    'the root': ['/', '"/" is a system directory: name a directory of its own below it'],
    'the root by detours': ['/srv/../.', '"/" is a system directory: name a directory of its own below it'],
    '/etc': ['/etc/', '"/etc" is a system directory: name a directory of its own below it'],
    '/var/lib': ['/var/lib', '"/var/lib" is a system directory: name a directory of its own below it'],
    'below /proc': ['/proc/1/x', '"/proc/1/x" is in /proc, which keeps nothing: name a directory on a disk'],
    "kubelet's manifests": [
      '/etc/kubernetes/manifests',
      '"/etc/kubernetes/manifests" is watched by kubelet, which would not notice that the directory was replaced: publish beside it',
    ],
    "a name as holdfast's own": [
      '/srv/.holdfast-0011',
      '"/srv/.holdfast-0011" has a name that holdfast reserves for its own files: choose another name',
    ],
    'a name too long': [`/srv/${'x'.repeat(256)}`, 'has a part longer than 255 bytes'],
    'a path that only a shell understands': [
      '~/certs',
      `"~/certs" starts with '~', which only a shell expands: write the path itself`,
    ],
    'a path with a variable': [
      '/srv/${NODE}/certs',
      '"/srv/${NODE}/certs" contains a variable, which only a shell expands: write the path itself',
    ],
    'a path with the field of a template': [
      '"/srv/{{ .Values.name }}/certs"',
      '"/srv/{{ .Values.name }}/certs" is a template ({{ }}): render the file first',
    ],
    'a path as a URL': ['file:///srv/certs', '"file:///srv/certs" is a URL: write the path itself'],
  }),
  ...brokenAt('./second', 'directories[1].path: ', {
    'the same target twice': [
      '/srv//certs/',
      '"/srv/certs" is the target of directories[0] already: put all the contents into one directory',
    ],
    'a target in a target': [
      '/srv/certs/inner',
      '"/srv/certs/inner" is inside the target of directories[0]: put all the contents into one directory, with into',
    ],
    'a target around a target': ['/srv', '"/srv" is a system directory: name a directory of its own below it'],
    'the configuration inside a target': [
      '.',
      '"/configurations" holds this configuration file, "/configurations/holdfast.yaml": it would be replaced too',
    ],
  }),
  broken(
    'the same target by a relative path',
    '/srv/certs',
    '/configurations/../configurations/second',
    '18:11: directories[1].path: "/configurations/second" is the target of directories[0] already: put all the contents into one directory',
  ),
  broken(
    'stateDirectory inside a target',
    'source:\n',
    'stateDirectory: /srv/certs/state\nsource:\n',
    '8:11: directories[0].path: "/srv/certs" holds stateDirectory, "/srv/certs/state": it would be replaced too',
  ),
  ...brokenAt('mode: "0755"', 'directories[0].', {
    'attributes that are neither': ['attributes: ^kept', 'attributes: "kept" is not one of set, keep'],
    'publish misspelt': [
      'publish: ^exchagne',
      'publish: "exchagne" is not one of exchange, symlink: did you mean "exchange"?',
    ],
    'a choice of words, answered with another kind of value': [
      'publish: ^true',
      'publish: must be one of exchange, symlink, not a boolean',
    ],
    'onMissing of no sense': ['onMissing: ^ignore', 'onMissing: "ignore" is not one of keep, remove'],
    'adopt as a word': [
      'adopt: ^"yes"',
      'adopt: must be true, false or replace, not a string: write true, without quotes',
    ],
    'no, as YAML 1.1 had it': [
      'adopt: ^no',
      'adopt: must be true, false or replace, not a string: write false, without quotes',
    ],
    'retire misspelt': [
      'retire: ^whenunused',
      'retire: "whenunused" is not one of immediately, whenUnused: did you mean "whenUnused"?',
    ],
    'retire for the form that keeps its directory': [
      'publish: symlink\n    retire: ^whenUnused',
      'retire: whenUnused is only for publish: exchange: leave out retire, or publish',
    ],
    'onDrop misspelt': ['onDrop: ^delete', 'onDrop: "delete" is not one of keep, remove'],
    'a time limit for nothing': [
      'retireTimeout: ^10m',
      'retireTimeout: retireTimeout has no effect without retire: whenUnused: add retire: whenUnused, or leave it out',
    ],
    'an age for a history of nothing': [
      'history: 0\n    historyMaxAge: ^1h',
      'historyMaxAge: historyMaxAge has no effect without history: add history: 3, or leave it out',
    ],
    'a wait for silence that ends before it': [
      'debounce: { quiet: ^6s }',
      'debounce.quiet: quiet (6000ms) is longer than atMost (5000ms): write a longer atMost, or a shorter quiet',
    ],
    'a wait that is shorter than the silence': [
      'debounce: { atMost: ^50ms }',
      'debounce.atMost: quiet (100ms) is longer than atMost (50ms): write a longer atMost, or a shorter quiet',
    ],
    'a wait as a word': ['debounce: ^100ms', 'debounce: must be a mapping, not a string'],
    'a time below nothing': [
      'minInterval: ^-1s',
      'minInterval: "-1s" is not a duration: write as in "10s", "1m30s", "500ms"',
    ],
    'an interval without end': ['hookInterval: ^25h', 'hookInterval: "25h" is out of range: write 0s to 24h'],
    'a limit without a unit': ['limits: { bytes: ^64 }', 'limits.bytes: 64 has no unit: write as in "64Mi"'],
    'a limit with another unit': [
      'limits: { bytes: ^64MB }',
      'limits.bytes: "64MB" is not a size: write as in "64Mi", "512Ki", "1Gi"',
    ],
    'a limit of more keys than are read': [
      'limits: { keys: ^40000 }',
      'limits.keys: 40000 is out of range: write 1 to 32768',
    ],
    'validate misspelt': [
      'validate: [^certificate]',
      'validate[0]: "certificate" is not one of certificates: did you mean "certificates"?',
    ],
    'validate: a bundle without a key': [
      'validate: [^bundle]',
      'validate[0]: bundle needs a key: write bundle: ca.crt',
    ],
    'validate: a bundle of no key': [
      'validate: [bundle: ^a/b]',
      `validate[0].bundle: "a/b" is not a key: it is letters, digits, '-', '_' and '.', at most 253, and does not start with '..'`,
    ],
    'validate: a bundle whose key is missing': [
      'validate: [{ ^bundle: }]',
      'validate[0].bundle: has no value: give the field a value, or remove it',
    ],
    'validate as a word': [
      'validate: ^certificates',
      'validate: must be a list, not a string: write it in brackets: [ ]',
    ],
    'a file with more than permissions': [
      'fileMode: ^"1644"',
      'fileMode: "1644" has bits that are not allowed here: at most "0777"',
    ],
    'a negative owner': ['owner: ^"-1:0"', 'owner: "-1:0" is not UID:GID: write numbers, as in "0:0"'],
    'an owner by name': [
      'owner: ^root:root',
      `owner: "root:root" has a name: write numbers, as in "0:0": the names of a container are not the host's`,
    ],
    'an owner without a group': ['owner: ^0', 'owner: 0 is a number: write a string of user and group, "0:0"'],
    'an owner of three': ['owner: ^"0:0:0"', 'owner: "0:0:0" is not UID:GID: write numbers, as in "0:0"'],
    'an owner that is no owner': [
      'owner: ^"4294967295:0"',
      'owner: "4294967295:0" is out of range: at most 4294967294',
    ],
  }),
  ...brokenAt('"0755"', 'directories[0].mode: ', {
    'a mode without quotes': ['0755', '0755 is a number (755 in YAML 1.2): write it as a string, "0755"'],
    'a mode without quotes and zero': ['755', '755 is a number: write it as a string, "0755"'],
    'an octal number': ['0o755', '0o755 is a number (493 in YAML 1.2): write it as a string, "0755"'],
    'a file’s mode without quotes': [
      '0644',
      '0644 is a number (644 in YAML 1.2): write octal digits as a string, as in "0755"',
    ],
    'a file’s mode': [
      '"0644"',
      'with "0644" somebody may list a directory and open nothing in it: did you mean fileMode? A directory has x where it has r, as in "0755"',
    ],
    'a decimal mode': ['493', '493 is a number: write octal digits as a string, as in "0755"'],
    'a mode of letters': ['rwxr-xr-x', '"rwxr-xr-x" is not a mode: write octal digits, as in "0755"'],
    'a mode of too many digits': ['"007555"', '"007555" is not a mode: write octal digits, as in "0755"'],
    'a set-user-ID directory': ['"4755"', '"4755" has bits that are not allowed here: at most "3777"'],
  }),
]
