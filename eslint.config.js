import tseslint from 'typescript-eslint'

/** The rooms, lowest first. A room imports values only from rooms below it; sideways and upwards, types only. */
const rooms = {
  native: [],
  'src/durable': ['native'],
  'src/objects': ['src/durable'],
  'src/directories': ['src/durable'],
  'src/static-pods': ['src/durable'],
  'src/config': [],
  'src/agent': ['src/config', 'src/objects', 'src/directories', 'src/static-pods', 'src/durable'],
  'src/cli': ['src/agent', 'src/config', 'src/objects', 'src/directories', 'src/static-pods', 'src/durable'],
}

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
            ...(room === 'native'
              ? []
              : [{ regex: '^koffi', message: 'Only native/ talks to libc; add the call there.' }]),
          ],
        },
      ],
    },
  }
})

export default tseslint.config(
  { ignores: ['dist/**', 'node_modules/**', '.tap/**', '**/*.js', '!bin/*.js'] },
  {
    files: ['**/*.ts'],
    extends: [...tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      eqeqeq: 'error',
    },
  },
  ...importRules,
)
