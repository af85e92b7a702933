/** Mistakes in targets, their modes and owners. */
import { broken, type BrokenConfiguration, sound } from '../broken-configuration.js'

const path = 'path: /srv/certs'
const mode = 'mode: "0755"'

export const brokenTargets: readonly BrokenConfiguration[] = [
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
    'attributes that are neither',
    path,
    `${path}\n    attributes: kept`,
    '8:17: directories[0].attributes: "kept" is not one of set, keep',
  ),
  broken(
    'the root',
    path,
    'path: /',
    '7:11: directories[0].path: "/" is a system directory: name a directory of its own below it',
  ),
  broken(
    'the root by detours',
    path,
    'path: /srv/../.',
    '7:11: directories[0].path: "/" is a system directory: name a directory of its own below it',
  ),
  broken(
    '/etc',
    path,
    'path: /etc/',
    '7:11: directories[0].path: "/etc" is a system directory: name a directory of its own below it',
  ),
  broken(
    '/var/lib',
    path,
    'path: /var/lib',
    '7:11: directories[0].path: "/var/lib" is a system directory: name a directory of its own below it',
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
    '7:11: directories[0].path: "/etc/kubernetes/manifests" is watched by kubelet, which would not notice that the directory was replaced: publish beside it',
  ),
  broken(
    "a name as holdfast's own",
    path,
    'path: /srv/.holdfast-0011',
    '7:11: directories[0].path: "/srv/.holdfast-0011" has a name that holdfast reserves for its own files: choose another name',
  ),
  broken(
    'the same target twice',
    './second',
    '/srv//certs/',
    '18:11: directories[1].path: "/srv/certs" is the target of directories[0] already: put all the contents into one directory',
  ),
  broken(
    'the same target by a relative path',
    path,
    'path: /configurations/../configurations/second',
    '18:11: directories[1].path: "/configurations/second" is the target of directories[0] already: put all the contents into one directory',
  ),
  broken(
    'a target in a target',
    './second',
    '/srv/certs/inner',
    '18:11: directories[1].path: "/srv/certs/inner" is inside the target of directories[0]: put all the contents into one directory, with into',
  ),
  broken(
    'a target around a target',
    './second',
    '/srv',
    '18:11: directories[1].path: "/srv" is a system directory: name a directory of its own below it',
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
    'retire misspelt',
    mode,
    'retire: whenunused',
    '8:13: directories[0].retire: "whenunused" is not one of immediately, whenUnused: did you mean "whenUnused"?',
  ),
  broken(
    'retire for the form that keeps its directory',
    mode,
    'publish: symlink\n    retire: whenUnused',
    '9:13: directories[0].retire: whenUnused is only for publish: exchange: leave out retire, or publish',
  ),
  broken(
    'a time limit for nothing',
    mode,
    'retireTimeout: 10m',
    '8:20: directories[0].retireTimeout: retireTimeout has no effect without retire: whenUnused: add retire: whenUnused, or leave it out',
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
  broken(
    'a path that only a shell understands',
    path,
    'path: ~/certs',
    `7:11: directories[0].path: "~/certs" starts with '~', which only a shell expands: write the path itself`,
  ),
  broken(
    'a path with a variable',
    path,
    'path: /srv/${NODE}/certs',
    '7:11: directories[0].path: "/srv/${NODE}/certs" contains a variable, which only a shell expands: write the path itself',
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
    'a negative owner',
    path,
    `${path}\n    owner: "-1:0"`,
    '8:12: directories[0].owner: "-1:0" is not UID:GID: write numbers, as in "0:0"',
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
]
