#!/usr/bin/env node
'use strict'
require('./prepare.js')

const { existsSync } = require('node:fs')
const { join } = require('node:path')
const parts = join(__dirname, '../dist/src/cli')
const loaded = async () => {
  // As scripts/program.mjs bundles it: Node reads CommonJS in a tenth of the time.
  if (existsSync(join(parts, 'main.cjs'))) return require(join(parts, 'main.cjs'))
  const compiled = join(parts, 'main.js')
  if (existsSync(compiled)) return import(require('node:url').pathToFileURL(compiled).href)
  process.stderr.write(`holdfast is not built yet (no ${compiled}): run "npm run build" first\n`)
  return { main: () => 1 }
}
void loaded().then(async ({ main }) => {
  process.exitCode = await main(process.argv.slice(2))
})
