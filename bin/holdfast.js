#!/usr/bin/env node
'use strict'
// This file holds no syntax and loads no module that an old Node lacks: so such a Node can say which one holdfast needs.
const needed = '^20.19 || >=22.3'
const [major, minor] = process.version.slice(1).split('.').map(Number)

if (major > 22 || (major === 22 && minor >= 3) || (major === 20 && minor >= 19)) start()
else {
  process.stderr.write(
    `holdfast needs Node ${needed}, and this is Node ${process.version}: install a newer one (https://nodejs.org)\n`,
  )
  process.exitCode = 1
}

function start() {
  require('./prepare.js')
  const ended = (code) => {
    process.exitCode = code
  }
  load().then(({ main }) => void main(process.argv.slice(2)).then(ended), refuse)
}

/** No part of the program has said what to do. */
function refuse({ code, message }) {
  const advice = code === 'EMFILE' ? 'raise the limit of open files (ulimit -n)' : 'install holdfast anew'
  process.stderr.write(`holdfast cannot load its program: ${message}; ${advice}\n`)
  process.exitCode = 1
}

async function load() {
  const { existsSync } = require('node:fs')
  const { join } = require('node:path')
  const parts = join(__dirname, '../dist/src/cli')
  // As scripts/program.mjs bundles it: Node reads CommonJS in a tenth of the time.
  if (existsSync(join(parts, 'main.cjs'))) return require(join(parts, 'main.cjs'))
  const compiled = join(parts, 'main.js')
  if (existsSync(compiled)) return import(require('node:url').pathToFileURL(compiled).href)
  process.stderr.write(`holdfast is not built yet (no ${compiled}): run "npm run build" first\n`)
  return { main: () => Promise.resolve(1) }
}
