/** Mistakes in contents selected by label. */
import { broken, type BrokenConfiguration } from '../broken-configuration.js'

const kubernetes = '{ kubeconfig: ./kubeconfig }'
const namespaces = '{ kubeconfig: ./kubeconfig, watch: namespaces }'
const collide =
  "is the same for all objects, and two of them may have the same key: write into: '{name}', or {name} in the path of each of the items"

export const brokenSelectors: readonly BrokenConfiguration[] = [
  // The sound configuration watches each object.
  broken(
    'a selector without the labels of all objects',
    'secret: serving-cert\n        into: secrets/serving-cert',
    "secrets: { selector: app=web, into: '{name}' }",
    '10:18: directories[0].contents[0].secrets: a selector needs the labels of all objects of a namespace: set source.kubernetes.watch: namespaces, which takes get, list and watch of all of them',
  ),
  ...selectors(
    ['no selector', '{}', '{}', 'selector: is required: write selector: app=web'],
    ['an empty selector', "{ selector: '' }", "''", 'selector: is an empty string: write "app=web"'],
    [
      'a selector of no sense',
      '{ selector: app>1 }',
      'app>1',
      'selector: ">" is not an operator: write app=web, app!=web, app in (web,db), app notin (web), app or !app, joined by \',\'',
    ],
    [
      'a label of no sense',
      '{ selector: a/b/c }',
      'a/b/c',
      'selector: "a/b/c" is not a label\'s key: it is [PREFIX/]NAME, as in app.kubernetes.io/name',
    ],
    [
      'a selector as a mapping',
      '{ matchLabels: { app: web }, selector: app }',
      'matchLabels',
      'matchLabels: unknown field: write selector: app=web',
    ],
    ['one place for all objects', '{ selector: app, into: certs }', 'certs', `into: "certs" ${collide}`],
    [
      'one path for all objects',
      '{ selector: app, into: ., items: [{ key: a, path: "{name}" }, { key: b, path: b }] }',
      '.,',
      `into: "." ${collide}`,
    ],
    [
      'a name that is not quoted',
      '{ selector: app, into: {name} }',
      '{name}',
      "into: must be a string, not a mapping: quote it: '{name}'",
    ],
    [
      'a name that nothing replaces',
      '{ selector: app, into: "{name}/{namespace}" }',
      '"{name}',
      'into: "{namespace}" is not known: holdfast replaces {name} only',
    ],
    [
      'names that climb',
      '{ selector: app, into: "../{name}" }',
      '"../',
      'into: "../{name}" contains \'..\': name a path inside the target',
    ],
    [
      'names at an absolute path',
      '{ selector: app, into: "/{name}" }',
      '"/',
      'into: "/{name}" is absolute: name a path inside the target',
    ],
    [
      'a namespace of no sense',
      '{ selector: app, namespace: A_B }',
      'A_B',
      'namespace: "A_B" is not a namespace: it is lower-case letters, digits and \'-\', at most 63',
    ],
  ),
  {
    mistake: 'options beside the selector',
    replace: [
      [kubernetes, namespaces],
      ['contents: [{ secret: other }]', 'contents: [{ secrets: { selector: app }, optional: true }]'],
    ],
    lines: ['19:46: directories[1].contents[0].optional: unknown field: put it into secrets'],
  },
  {
    mistake: 'files where the directories of what is selected must be',
    replace: [
      [kubernetes, namespaces],
      [
        'contents: [{ secret: other }]',
        `contents:
      - { secrets: { selector: app, into: 'tls/x/{name}' } }
      - { configMaps: { selector: app, into: ., items: [{ key: a, path: 'conf/{name}' }] } }
      - { combine: tls, from: [{ secret: other, key: a }] }
      - { combine: conf, from: [{ secret: other, key: a }] }`,
      ],
    ],
    lines: [
      '22:20: directories[1].contents[2].combine: "tls" is a file here, and a directory for directories[1].contents[0].secrets.into',
      '23:20: directories[1].contents[3].combine: "conf" is a file here, and a directory for directories[1].contents[1].configMaps.items[0].path',
    ],
  },
  {
    mistake: 'the same selection twice',
    replace: [
      [kubernetes, namespaces],
      ['contents: [{ secret: other }]', 'contents: [{ secrets: { selector: app } }, { secrets: { selector: app } }]'],
    ],
    lines: [
      '19:59: directories[1].contents[1].secrets: writes every key of Secret kube-system/(app) a second time: directories[1].contents[0] does so already',
    ],
  },
]

type Mistake = readonly [mistake: string, is: string, at: string, message: string]

/** Each is written in place of the last directory's contents; `at` is the text that is wrong in it. */
function selectors(...mistakes: readonly Mistake[]): BrokenConfiguration[] {
  return mistakes.map(([mistake, is, at, message]) => {
    const line = `    contents: [{ secrets: ${is} }]`
    return {
      mistake,
      replace: [
        [kubernetes, namespaces],
        ['contents: [{ secret: other }]', line.trim()],
      ],
      lines: [`19:${line.indexOf(at) + 1}: directories[1].contents[0].secrets.${message}`],
    }
  })
}
