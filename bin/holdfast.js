#!/usr/bin/env node
import { existsSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'

// A daemon that runs on every node, and waits for its disk and its network all day, should be small rather than fast: the young
// generation stays at its first size, and nothing is compiled to optimized machine code. Measured with 50 directories of a Secret
// each, Node 20: 17 to 20 MB of anonymous memory instead of 36 MB.
const small = ['--semi-space-growth-factor=1', '--optimize-for-size', '--no-opt']
if (process.argv.includes('agent') || process.argv.includes('demo')) small.forEach((flag) => setFlagsFromString(flag))

const built = new URL('../dist/src/cli/main.js', import.meta.url)
if (existsSync(built)) {
  const { main } = await import(built)
  process.exitCode = await main(process.argv.slice(2))
} else {
  process.stderr.write(`holdfast is not built yet (no ${built.pathname}): run "npm run build" first\n`)
  process.exitCode = 1
}
