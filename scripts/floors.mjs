/** The rooms of the core, lowest first: each imports from the doors of those before it (eslint.config.js). */
export const floors = [
  'path',
  'posix',
  'record',
  'target',
  'keep',
  'look',
  'publish',
  'operator',
  'adopt',
  'remove',
  'move',
  'single-calls',
]
