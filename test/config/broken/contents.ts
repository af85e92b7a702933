/** Mistakes in what a directory holds. */
import { broken, type BrokenConfiguration } from '../broken-configuration.js'

const mode = 'mode: "0755"'
const secret = 'secret: serving-cert\n'
const into = 'into: secrets/serving-cert'
const items = '[{ key: ca.crt, path: ca.crt }]'
const from = '[{ secret: serving-cert, key: tls.key }]'

export const brokenContents: readonly BrokenConfiguration[] = [
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
    '10:9: directories[0].contents[0]: has both secret and configMap: give exactly one of secret, configMap, secrets, configMaps, combine',
  ),
  broken(
    'neither',
    secret,
    'optional: true\n',
    '10:9: directories[0].contents[0]: is incomplete: give exactly one of secret, configMap, secrets, configMaps, combine',
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
    '11:15: directories[0].contents[0].into: "../other" contains \'..\': name a path inside the target',
  ),
  broken(
    'into that climbs later',
    into,
    'into: a/../../b',
    '11:15: directories[0].contents[0].into: "a/../../b" contains \'..\': name a path inside the target',
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
    '13:38: directories[0].contents[1].items[0].path: "../ca.crt" contains \'..\': name a path inside the target',
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
    '11:9: directories[0].contents[1]: writes every key of Secret kube-system/serving-cert a second time: directories[0].contents[0] does so already',
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
    '16:9: directories[0].contents[2].into: unknown field: put it into combine',
  ),
  broken(
    'optional in from',
    from,
    '[{ secret: serving-cert, key: tls.key, optional: true }]',
    '15:54: directories[0].contents[2].from[0].optional: unknown field: set optional on the combined file as a whole',
  ),
]
