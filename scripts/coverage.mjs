/** `npm run coverage`: all tests under c8. A source without code, which compiles to nothing, would count as lines that no test reaches. */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { compile } from './compile.mjs'

await compile()
const isEmpty = (file) =>
  readFileSync(join('dist', file), 'utf8')
    .replace(/^\/\/# sourceMappingURL=.*$/m, '')
    .trim() === ''
const compiled = readdirSync('dist', { recursive: true }).filter((file) => /^(src|native|torture)\/.*\.js$/.test(file))
const excluded = compiled.filter(isEmpty).map((file) => file.replace(/js$/, 'ts'))
console.log(`without code, and not counted: ${excluded.join(', ')}`)
const options = excluded.flatMap((file) => ['--exclude', file])
const { status } = spawnSync('c8', [...options, 'node', 'test/run.mjs', ...process.argv.slice(2)], { stdio: 'inherit' })
process.exitCode = status ?? 1
