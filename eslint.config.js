import tseslint from 'typescript-eslint'

/** The rooms, lowest first. A room imports values only from rooms below it; sideways and upwards, types only. */
const rooms = {
  native: [],
  'src/yaml': [],
  'src/durable': ['native'],
  'src/objects': ['src/yaml', 'src/durable'],
  'src/static-pods': ['src/objects', 'src/yaml', 'src/durable'],
  'src/directories': ['src/static-pods', 'src/durable'],
  'src/config': ['src/yaml'],
  'src/torture': ['src/durable'],
  'src/check': ['src/config', 'src/objects', 'src/directories', 'src/static-pods', 'src/durable', 'native'],
  'src/agent': ['src/config', 'src/objects', 'src/directories', 'src/static-pods', 'src/durable'],
  'src/cli': [
    'src/agent',
    'src/check',
    'src/config',
    'src/objects',
    'src/directories',
    'src/static-pods',
    'src/torture',
    'src/yaml',
    'src/durable',
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
const early = ['src/durable', 'src/objects', 'src/directories', 'src/agent']

/** The door to the core, and the smaller one to what only publishes. */
const insideDurable = '/durable/(?!(?:index|publishing)\\.js$)'

const importRules = Object.entries(rooms).map(([room, below]) => {
  const forbidden = Object.keys(rooms).filter((other) => other !== room && !below.includes(other))
  return {
    files: [`${room}/**/*.ts`],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: [
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
                    message: 'Import it from src/durable/index.ts, or publishing.ts.',
                  },
                ]
              : []),
            ...(room === 'native'
              ? []
              : [{ regex: '^koffi', message: 'Only native/ talks to libc; add the call there.' }]),
          ],
        },
      ],
      'no-restricted-syntax': [
        'error',
        ...forbidden.map((other) => ({
          selector: dynamicImport(`/${other.replace('src/', '')}/`),
          message: `${room} may call ${below.join(', ') || 'nobody'}, not ${other}.`,
        })),
        ...(room === 'native'
          ? []
          : [
              {
                selector: dynamicImport('^koffi'),
                message: 'Only native/ talks to libc; add the call there.',
              },
            ]),
        ...(below.includes('src/durable')
          ? [
              {
                selector: dynamicImport(insideDurable),
                message: 'Import it from src/durable/index.ts, or publishing.ts.',
              },
            ]
          : []),
        ...(early.includes(room) ? [lateImport] : []),
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
      // A file tells of one thing: what grows beyond this is split by concept, not by size.
      'max-lines': ['error', 300],
      eqeqeq: 'error',
    },
  },
  {
    files: ['src/**/*.ts'],
    rules: {
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
    files: ['test/**/*.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector:
            "CallExpression[callee.object.name='t'][callee.property.name='match'] > ObjectExpression:nth-child(2) ArrayExpression[elements.length=0]",
          message: 'An empty list as a pattern matches any list: compare it with t.same.',
        },
      ],
    },
  },
  ...importRules,
)
