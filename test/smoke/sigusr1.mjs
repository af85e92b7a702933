/*
 * A program under SIGUSR1 from its very start, on the Node that it is given: `node sigusr1.mjs PORTS READY COMMAND...` sends the signal
 * again and again until READY, a regular expression, stands in the program's output or the program has ended, then sends some more. Prints
 * as JSON how many signals were sent, on which ports the program listens after them, its exit code and signal where it has ended, and the end
 * of its output. PORTS: on how many the program listens by itself; it has five seconds to listen on no more.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { constants } from 'node:os'
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'

const [, , own, ready, ...command] = process.argv
const patience = 60_000
const afterwards = 500
const settling = 5_000

// A signal that is ignored when a program starts stays so until the program decides otherwise: so the first may come before Node runs.
const child = spawn('sh', ['-c', 'trap "" USR1; exec "$@"', 'sh', ...command], { stdio: ['ignore', 'pipe', 'pipe'] })
const closed = once(child, 'close')
let output = ''
for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))

const ended = () => child.exitCode !== null || child.signalCode !== null
const survives = () => {
  const status = readFileSync(`/proc/${child.pid}/status`, 'latin1')
  const masks = ['SigIgn', 'SigBlk', 'SigCgt'].map((name) =>
    BigInt(`0x${new RegExp(`^${name}:\\s*([0-9a-f]+)$`, 'm').exec(status)[1]}`),
  )
  return masks.some((mask) => ((mask >> BigInt(constants.signals.SIGUSR1 - 1)) & 1n) === 1n)
}

/** Ports of the process's own sockets that listen. */
function listening() {
  const sockets = readdirSync(`/proc/${child.pid}/fd`).flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${child.pid}/fd/${fd}`))?.[1] ?? []
    } catch {
      // It was closed meanwhile.
      return []
    }
  })
  const listens = '0A'
  return ['tcp', 'tcp6'].flatMap((table) =>
    readFileSync(`/proc/${child.pid}/net/${table}`, 'latin1')
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === listens && sockets.includes(fields[9]))
      .map((fields) => Number.parseInt(fields[1].split(':')[1], 16)),
  )
}

const deadline = Date.now() + patience
while (!survives() && !ended()) await turn()
let signals = 0
while (!ended() && !new RegExp(ready).test(output)) {
  if (Date.now() > deadline) {
    child.kill('SIGKILL')
    throw new Error(`not ready after ${patience} ms and ${signals} signals: ${output}`)
  }
  if (child.kill('SIGUSR1')) signals += 1
  // A signal that is always pending keeps the program from ever starting a process of its own: the kernel begins each fork(2) anew.
  await wait(1)
}
for (let count = 0; count < afterwards && !ended(); count += 1) {
  child.kill('SIGUSR1')
  await turn()
}
let ports = []
for (const end = Date.now() + settling; !ended(); await wait(20)) {
  ports = listening()
  if (ports.length <= Number(own) || Date.now() > end) break
}
const { exitCode: code, signalCode: signal } = child
child.kill('SIGKILL')
await closed
console.log(JSON.stringify({ signals, ports, code, signal, output: output.slice(-4_000) }))
