'use strict'
// Settings that must precede the first module of the program.

// SIGHUP asks the agent to read its configuration again. Before the agent listens for it, the agent has not read its configuration either,
// so that the signal asks for nothing; but without a listener, it would end the process.
if (process.argv[2] === 'agent') process.on('SIGHUP', () => {})

// The program gives each file its mode; under a umask that takes permissions from the owner, the kernel would deny it its own staged
// directories and lock files. Programs that it starts inherit the rest of the umask.
process.umask(process.umask() & 0o077)

// One signal of a command has as many listeners as there are objects under way. From the eleventh on, Node would print a warning of a leak
// between the lines that other programs parse.
require('node:events').defaultMaxListeners = 0

// At SIGUSR1 Node opens its inspector on 127.0.0.1:9229, where every user of the machine, and every pod with hostNetwork, may run code in
// this process. A listener takes the signal away from Node. It stays to the end: without one, the signal would end the process.
process.on('SIGUSR1', () => {})

// NODE_OPTIONS has opened it, or a signal that came before that line: now, or later, once the thread in which Node waits for the signal gets
// a processor; and once more for each signal. So it is closed here, before each command (src/cli/main.ts), before the agent serves, and at
// growing intervals: a loop of signals to a busy machine opened it 200 ms after this line. `_debugEnd` is what node:inspector exports as
// `close` (Node, lib/inspector.js): loading that module takes 10 ms and 2 MB. A Node that was built without an inspector has neither.
const firstPause = 10
const lastPause = 10_000
function closeInspector(pause) {
  process._debugEnd?.()
  if (pause < lastPause) setTimeout(closeInspector, pause, pause * 1.25).unref()
}
closeInspector(firstPause)

const serves = process.argv.includes('agent')

// The agent bounds the threads that each file system may keep, so that one which hangs takes them from no other; that takes more than
// libuv's four. libuv reads their number when it starts the first, which the loader of an ES module has done before the module's first
// statement: so this file is no ES module. A hook that the agent starts chooses its own pool.
if (serves && process.env.UV_THREADPOOL_SIZE === undefined) {
  process.env.UV_THREADPOOL_SIZE = '32'
  require('node:fs').access('/proc/self', () => {})
  delete process.env.UV_THREADPOOL_SIZE
}

// A daemon that runs on every node, and waits for its disk and its network all day, should be small rather than fast: the young
// generation stays at its first size, and nothing is compiled to machine code, optimized or not: what runs once in a while is no faster
// for it. Measured with 50 directories of a Secret each, Node 20: docs/decisions/memory-and-dependencies.md.
const small = ['--semi-space-growth-factor=1', '--optimize-for-size']
if (serves) small.push('--no-opt', '--no-sparkplug')
// `fleet` reads each node's report, and keeps a few words of it: of 5,000 nodes, it had 124 MiB without them, and 90 with them.
if (serves || process.argv.includes('fleet')) small.forEach((flag) => require('node:v8').setFlagsFromString(flag))
