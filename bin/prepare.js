'use strict'
// What has to be set before the first module of the program is loaded.
const serves = process.argv.includes('agent') || process.argv.includes('demo')

// The agent bounds the threads that each file system may keep, so that one which hangs takes them from no other; that takes more
// than libuv's four. libuv reads their number when it starts the first, which the loader of an ES module has done before the
// module's first statement: so this file is no ES module. A hook that the agent starts has a pool of its own choice.
if (serves && process.env.UV_THREADPOOL_SIZE === undefined) {
  process.env.UV_THREADPOOL_SIZE = '32'
  require('node:fs').access('/proc/self', () => {})
  delete process.env.UV_THREADPOOL_SIZE
}

// A daemon that runs on every node, and waits for its disk and its network all day, should be small rather than fast: the young
// generation stays at its first size, and nothing is compiled to machine code, optimized or not: what runs once in a while is no faster
// for it. Measured with 50 directories of a Secret each, Node 20: docs/decisions/memory-and-dependencies.md.
const small = ['--semi-space-growth-factor=1', '--optimize-for-size', '--no-opt', '--no-sparkplug']
if (serves) small.forEach((flag) => require('node:v8').setFlagsFromString(flag))
