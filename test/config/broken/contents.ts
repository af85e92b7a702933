/** Mistakes in what a directory holds. */
import { broken, brokenAt, type BrokenConfiguration } from '../broken-configuration.js'

const secret = 'secret: serving-cert\n'
const items = '[{ key: ca.crt, path: ca.crt }]'
const from = '[{ secret: serving-cert, key: tls.key }]'

export const brokenContents: readonly BrokenConfiguration[] = [
  ...brokenAt('[{ secret: other }]', 'directories[1].contents: ', {
    'contents as a mapping': ['{ secret: other }', 'must be a list, not a mapping'],
    'no contents': ['[]', 'is an empty list'],
  }),
  ...brokenAt(secret, 'directories[0].contents', {
    'a secret and a configMap': [
      'secret: serving-cert\n        configMap: ca-bundle\n',
      '[0]: has both secret and configMap: give exactly one of secret, configMap, secrets, configMaps, combine',
    ],
    neither: [
      'optional: true\n',
      '[0]: is incomplete: give exactly one of secret, configMap, secrets, configMaps, combine',
    ],
    'the same object twice': [
      `secret: serving-cert\n      - ^secret: kube-system/serving-cert\n      - ${secret}`,
      '[1]: writes every key of Secret kube-system/serving-cert a second time: directories[0].contents[0] does so already',
    ],
  }),
  ...brokenAt('serving-cert', 'directories[0].contents[0].secret: ', {
    'a name in upper case': [
      'Serving-Cert',
      `"Serving-Cert" is not the name of a Secret: it is lower-case letters, digits, '-' and '.', at most 253`,
    ],
    'a name that climbs': [
      '../serving-cert',
      `".." is not a namespace: it is lower-case letters, digits and '-', at most 63`,
    ],
    'a namespace as only a name may be': [
      'a.b/serving-cert',
      `"a.b" is not a namespace: it is lower-case letters, digits and '-', at most 63`,
    ],
    'a namespace of no sense': [
      'a_b/serving-cert',
      `"a_b" is not a namespace: it is lower-case letters, digits and '-', at most 63`,
    ],
    'a name of three parts': ['a/b/c', `"a/b/c" has more than one '/': write NAMESPACE/NAME or NAME`],
  }),
  ...brokenAt('secrets/serving-cert', 'directories[0].contents[0].into: ', {
    'into that climbs': ['../other', `"../other" contains '..': name a path inside the target`],
    'into that climbs later': ['a/../../b', `"a/../../b" contains '..': name a path inside the target`],
    'an absolute into': ['/secrets', '"/secrets" is absolute: name a path inside the target'],
    'into with a trailing slash': ['secrets/', `"secrets/" has an empty or '.' part: write "secrets"`],
    'into with a dot': ['./secrets', `"./secrets" has an empty or '.' part: write "secrets"`],
  }),
  ...brokenAt(items, 'directories[0].contents[1].items', {
    'an item that climbs': [
      '[{ key: ca.crt, path: ^../ca.crt }]',
      `[0].path: "../ca.crt" contains '..': name a path inside the target`,
    ],
    'an item that is the directory': [
      '[{ key: ca.crt, path: ^. }]',
      `[0].path: "." has an empty or '.' part: name a path inside the target`,
    ],
    'an item without a path': ['[^{ key: ca.crt }]', '[0].path: is required: write path: ca.crt'],
    'an item without a key': ['[^{ path: ca.crt }]', '[0].key: is required: write key: tls.crt'],
    'an item as a word': ['[^ca.crt]', '[0]: must be a mapping, not a string'],
    'a key with a slash': [
      '[{ key: ^a/b, path: ca.crt }]',
      `[0].key: "a/b" is not a key: it is letters, digits, '-', '_' and '.', at most 253, and does not start with '..'`,
    ],
    'no items': ['[]', ': is an empty list'],
    'two items of one file': [
      '[{ key: a, path: ca.crt }, { key: b, path: ^ca.crt }]',
      '[1].path: "ca.crt" is written twice, first by directories[0].contents[1].items[0].path',
    ],
    'a file that is a directory': [
      '[{ key: a, path: ^secrets }]',
      '[0].path: "secrets" is a file here, and a directory for directories[0].contents[0].into',
    ],
    'a file below a file': [
      '[{ key: a, path: x }, { key: b, path: ^x/y }]',
      '[1].path: "x" is a directory here, and a file for directories[0].contents[1].items[0].path',
    ],
  }),
  {
    mistake: 'a directory of a reserved name in symlink mode',
    replace: [
      ['mode: "0755"', 'publish: symlink'],
      ['into: secrets/serving-cert', 'into: ..data'],
    ],
    lines: [
      '11:15: directories[0].contents[0].into: "..data" is reserved with publish: symlink: choose a name that does not start with \'..\'',
    ],
  },
  {
    mistake: '..data in symlink mode',
    replace: [
      ['mode: "0755"', 'publish: symlink'],
      [items, '[{ key: a, path: ..data/x }]'],
    ],
    lines: [
      '13:33: directories[0].contents[1].items[0].path: "..data" is reserved with publish: symlink: choose a name that does not start with \'..\'',
    ],
  },
  broken(
    'an item and a combined file',
    items,
    '[{ key: a, path: server.pem }]',
    '14:18: directories[0].contents[2].combine: "server.pem" is written twice, first by directories[0].contents[1].items[0].path',
  ),
  {
    mistake: 'an item in a directory, and a combined file',
    replace: [
      [items, '[{ key: a, path: server.pem }]\n        into: tls'],
      ['combine: server.pem', 'combine: tls/server.pem'],
    ],
    lines: [
      '15:18: directories[0].contents[2].combine: "tls/server.pem" is written twice, first by directories[0].contents[1].items[0].path',
    ],
  },
  broken(
    'a combined file that is a directory',
    'server.pem',
    'secrets/serving-cert',
    '14:18: directories[0].contents[2].combine: "secrets/serving-cert" is a file here, and a directory for directories[0].contents[0].into',
  ),
  ...brokenAt(from, 'directories[0].contents[2].', {
    'from nothing': ['[]', 'from: is an empty list'],
    'from without a key': ['[^{ secret: serving-cert }]', 'from[0].key: is required: write key: tls.crt'],
    'from neither': ['[^{ key: tls.key }]', 'from[0]: is incomplete: give exactly one of secret, configMap'],
    'into with combine': [`${from}\n        ^into: x`, 'into: unknown field: put it into combine'],
    'optional in from': [
      '[{ secret: serving-cert, key: tls.key, ^optional: true }]',
      'from[0].optional: unknown field: set optional on the combined file as a whole',
    ],
  }),
]
