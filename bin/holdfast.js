#!/usr/bin/env node
'use strict'
require('./prepare.js')

const built = require('node:path').join(__dirname, '../dist/src/cli/main.js')
if (require('node:fs').existsSync(built)) {
  const { pathToFileURL } = require('node:url')
  void import(pathToFileURL(built).href).then(async ({ main }) => {
    process.exitCode = await main(process.argv.slice(2))
  })
} else {
  process.stderr.write(`holdfast is not built yet (no ${built}): run "npm run build" first\n`)
  process.exitCode = 1
}
