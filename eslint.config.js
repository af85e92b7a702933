import tseslint from 'typescript-eslint'
import { floors } from './scripts/floors.mjs'

/** The rooms, lowest first. A room imports values only from rooms below it; sideways and upwards, types only. */
const rooms = {
  native: [],
  'src/yaml': [],
  'src/x509': [],
  'src/durable': ['native'],
  'src/kubernetes': ['src/yaml', 'src/x509'],
  'src/objects': ['src/kubernetes', 'src/yaml', 'src/durable'],
  'src/static-pods': ['src/objects', 'src/kubernetes', 'src/yaml', 'src/x509', 'src/durable'],
  'src/fleet': ['src/objects', 'src/kubernetes'],
  'src/directories': ['src/static-pods', 'src/x509', 'src/durable', 'native'],
  'src/config': ['src/yaml'],
  torture: ['src/durable'],
  'src/check': [
    'src/config',
    'src/objects',
    'src/kubernetes',
    'src/directories',
    'src/static-pods',
    'src/x509',
    'src/durable',
    'native',
  ],
  'src/agent': [
    'src/fleet',
    'src/config',
    'src/objects',
    'src/kubernetes',
    'src/directories',
    'src/static-pods',
    'src/x509',
    'src/durable',
    'native',
  ],
  'src/cli': [
    'src/agent',
    'src/fleet',
    'src/check',
    'src/config',
    'src/objects',
    'src/kubernetes',
    'src/directories',
    'src/static-pods',
    'torture',
    'src/yaml',
    'src/x509',
    'src/durable',
    'native',
  ],
}

/** What a room may not reach, as a selector of `import()` calls; a slash in it ends the selector, so that it has another form. */
const dynamicImport = (pattern) => `ImportExpression[source.value=/${pattern.replaceAll('/', '\\u002F')}/]`

/**
 * Node keeps a module that could not be loaded once as failed. What a daemon loads when it is needed, and not when it starts, fails
 * for ever after the first moment without a free descriptor; Node's own modules are in its binary.
 */
const lateImport = {
  selector: 'ImportExpression:not([source.value=/^node:/])',
  message: 'A module that cannot be loaded once never can: import it at the top, or see to it that the start loads it.',
}
/** They say what is loaded with the first configuration that needs it, and see to that. */
const lateImporters = ['src/agent/needed-modules.ts', 'src/directories/hooks.ts']
const early = ['src/durable', 'src/kubernetes', 'src/objects', 'src/fleet', 'src/directories', 'src/agent']

/** The door to the core, the smaller one to what only publishes, and the words that all of it uses. */
const insideDurable = '/durable/(?!(?:index|publishing|errors|types)\\.js$)'

/** A room whose door is all that other rooms import of it. */
const insideTorture = '/torture/(?!(?:index|types)\\.js$)'

/** What a file of a room may not import, as patterns of `no-restricted-imports`. */
const patternsOf = (room, below) => {
  const forbidden = Object.keys(rooms).filter((other) => other !== room && !below.includes(other))
  return [
    ...forbidden.map((other) => ({
      // types.ts modules are what rooms share: types, and the words that go with them.
      regex: `/${other.replace('src/', '')}/(?!types\\.js)`,
      allowTypeImports: other !== 'native',
      message: `${room} may call ${below.join(', ') || 'nobody'}; from ${other} it may import types only.`,
    })),
    ...(below.includes('src/durable')
      ? [
          {
            regex: insideDurable,
            allowTypeImports: true,
            message: 'Import it from src/durable/index.ts, publishing.ts or errors.ts.',
          },
        ]
      : []),
    ...(below.includes('torture')
      ? [
          { regex: insideTorture, allowTypeImports: true, message: 'Import it from torture/index.ts.' },
          {
            regex: '/torture/index\\.js$',
            allowTypeImports: true,
            message: 'Load it late: only two commands need it.',
          },
        ]
      : []),
    ...(room === 'native' ? [] : [{ regex: '^koffi', message: 'Only native/ talks to libc; add the call there.' }]),
  ]
}

/** What no `import()` of a room may reach. */
function dynamicRules(room, below) {
  const forbidden = Object.keys(rooms).filter((other) => other !== room && !below.includes(other))
  return [
    ...forbidden.map((other) => ({
      selector: dynamicImport(`/${other.replace('src/', '')}/`),
      message: `${room} may call ${below.join(', ') || 'nobody'}, not ${other}.`,
    })),
    ...(room === 'native'
      ? []
      : [{ selector: dynamicImport('^koffi'), message: 'Only native/ talks to libc; add the call there.' }]),
    ...(below.includes('src/durable')
      ? [
          {
            selector: dynamicImport(insideDurable),
            message: 'Import it from src/durable/index.ts, publishing.ts or errors.ts.',
          },
        ]
      : []),
    ...(below.includes('torture')
      ? [{ selector: dynamicImport(insideTorture), message: 'Import it from torture/index.ts.' }]
      : []),
  ]
}

const importRules = Object.entries(rooms).map(([room, below]) => ({
  files: [`${room}/**/*.ts`],
  rules: {
    '@typescript-eslint/no-restricted-imports': ['error', { patterns: patternsOf(room, below) }],
    'no-restricted-syntax': ['error', ...dynamicRules(room, below), ...(early.includes(room) ? [lateImport] : [])],
  },
}))

const lateRules = lateImporters.map((file) => {
  const room = early.find((one) => file.startsWith(`${one}/`))
  return { files: [file], rules: { 'no-restricted-syntax': ['error', ...dynamicRules(room, rooms[room])] } }
})

const floorRules = floors.map((floor, index) => {
  const above = floors.slice(index + 1)
  return {
    files: [`src/durable/${floor}/**/*.ts`],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: [
            ...patternsOf('src/durable', rooms['src/durable']),
            {
              regex: `^\\.\\./(?:${floors.join('|')})/(?!index\\.js$)`,
              message: 'Import it from the door of its room, index.ts.',
            },
            {
              regex: '^\\.\\.?/(?:index|publishing)\\.js$',
              message: 'The doors of src/durable are for the other rooms.',
            },
            ...(above.length > 0
              ? [
                  {
                    regex: `^\\.\\./(?:${above.join('|')})/`,
                    message: `${floor} may import from ${floors.slice(0, index).join(', ') || 'nobody'}.`,
                  },
                ]
              : []),
          ],
        },
      ],
    },
  }
})

export default tseslint.config(
  { ignores: ['dist/**', 'node_modules/**', '.tap/**', '**/*.js', '!bin/*.js', 'test/smoke/**'] },
  {
    files: ['**/*.ts'],
    extends: [...tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      // What is taken out of an object, so that the rest goes on without it.
      '@typescript-eslint/no-unused-vars': ['error', { ignoreRestSiblings: true }],
      eqeqeq: 'error',
    },
  },
  {
    files: ['src/**/*.ts'],
    rules: {
      // A function fits a screen. A file holds one concept, whatever its length.
      'max-lines-per-function': ['error', { max: 70, skipBlankLines: true, skipComments: true }],
      'no-restricted-properties': [
        'error',
        {
          object: 'AbortSignal',
          property: 'timeout',
          message:
            'Node 20 loses it at garbage collection once AbortSignal.any has taken it: use Deadline (src/deadline.ts).',
        },
      ],
    },
  },
  {
    // One table: each metric with what sets it.
    files: ['src/agent/report/prometheus.ts'],
    rules: { 'max-lines-per-function': 'off' },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      // An async test ends by itself, and a test that forgets `t.end()` hangs: so each is async, whether or not it awaits anything.
      '@typescript-eslint/require-await': 'off',
      'no-restricted-syntax': [
        'error',
        {
          selector:
            "CallExpression[callee.object.name='t'][callee.property.name='match'] > ObjectExpression:nth-child(2) ArrayExpression[elements.length=0]",
          message: 'An empty list as a pattern matches any list: compare it with t.same.',
        },
        {
          selector: "CallExpression[callee.property.name='testdir']",
          message: 'Its name has the names of all files of the process: use scratch of test/durable/scratch.ts.',
        },
        {
          selector:
            "CallExpression[callee.object.name='t'][callee.property.name='match'] > ArrayExpression:nth-child(2):not(:has(> :not(Literal))) > Literal",
          message: 'A longer list matches these, too: t.matchOnly says how many there are.',
        },
        ...[
          'CallExpression > BinaryExpression.arguments[operator=/^<=?$/]',
          'IfStatement[consequent.type="ThrowStatement"] > BinaryExpression.test[operator=/^>=?$/]',
        ].map((judged) => ({
          selector: `${judged} > BinaryExpression.left[operator='-'] > CallExpression.left[callee.property.name='now']`,
          message:
            'A busy machine takes any time. Await an event, count, or let the test move the clock (test/simulated-time.ts).',
        })),
      ],
    },
  },
  ...importRules,
  ...lateRules,
  ...floorRules,
)
