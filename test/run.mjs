/** `npm test`: compiles what has changed, and runs tests; test/runner/arguments.ts says which, and how. */
import { compile } from '../scripts/compile.mjs'

try {
  await compile()
} catch (error) {
  // esbuild has printed what is wrong, and where.
  if (!Array.isArray(error.errors)) throw error
  process.exit(1)
}
const { main } = await import('../dist/test/runner/main.js')
process.exitCode = await main(process.argv.slice(2))
