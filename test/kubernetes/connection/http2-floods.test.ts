/** A server that floods a connection of HTTP/2, or breaks its rules: the request ends in time, the memory stays, and others go on. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import t from 'tap'
import { connectTo, once, serving, start } from './connected.js'

const frame = (type: number, flags: number, stream: number, payload: Buffer | string = ''): string => {
  const body = Buffer.from(payload)
  const head = Buffer.alloc(9)
  head.writeUIntBE(body.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, body]).toString('hex')
}
const [data, headers, priority, reset, settings, promise, ping, goaway, update, continuation] = Array.from(
  { length: 10 },
  (_, type) => type,
) as [number, number, number, number, number, number, number, number, number, number]
/** `:status: 200`, by the static table. */
const ok = Buffer.from([0x88])
const endHeaders = 4
const head = frame(headers, endHeaders, 1, ok)
const word = (...bytes: number[]): Buffer => Buffer.from(bytes)
/** A field that is sent literally, without a place in the table. */
const field = (name: string, value: string): Buffer =>
  Buffer.concat([word(0, name.length), Buffer.from(name), word(value.length), Buffer.from(value)])

/** What comes once, and what comes again and again. */
interface Flood {
  readonly first?: string
  readonly again: string
}

/** The client's first stream is 1. */
const floods: Readonly<Record<string, Flood>> = {
  pings: { again: frame(ping, 0, 0, Buffer.alloc(8)) },
  'answers to pings that nobody sent': { again: frame(ping, 1, 0, Buffer.alloc(8)) },
  settings: { again: frame(settings, 0, 0) },
  'settings that change the table of headers': {
    again: frame(settings, 0, 0, word(0, 1, 0, 0, 0, 0)) + frame(settings, 0, 0, word(0, 1, 0, 1, 0, 0)),
  },
  'windows of one byte more': { again: frame(update, 0, 0, word(0, 0, 0, 1)) },
  'a window beyond 31 bits': { again: frame(update, 0, 0, word(0x7f, 255, 255, 255)) },
  'a window of nothing': { again: frame(update, 0, 1, word(0, 0, 0, 0)) },
  priorities: { again: frame(priority, 0, 1, word(0, 0, 0, 0, 1)) },
  'data without a byte': { first: head, again: frame(data, 0, 1) },
  'data that is padding alone': {
    first: head,
    again: frame(data, 8, 1, Buffer.concat([word(255), Buffer.alloc(255)])),
  },
  'data of a stream that nobody opened': { again: frame(data, 0, 7, 'x') },
  'data of no stream': { again: frame(data, 0, 0, 'x') },
  'headers that go on without end': {
    first: frame(headers, 0, 1, ok),
    again: frame(continuation, 0, 1, field('a', 'b')),
  },
  'headers again and again': { again: head },
  'pushed streams': { again: frame(promise, endHeaders, 1, Buffer.concat([word(0, 0, 0, 2), ok])) },
  'resets of one stream': { again: frame(reset, 0, 1, word(0, 0, 0, 8)) },
  'farewells that are none': { again: frame(goaway, 0, 0, word(0, 0, 0, 1, 0, 0, 0, 0)) },
  'frames of no known type': { again: frame(250, 0, 0, Buffer.alloc(1_000)) },
  'a frame beyond its size': { again: frame(data, 0, 1, Buffer.alloc(20_000)) },
}

/** Milliseconds of each flood. */
const flooded = 200

/** Prints the port of a server for each flood. */
const script = `
  const { createServer } = require('node:tls')
  const { KEY: key, CRT: cert, FLOODS } = process.env
  const settings = Buffer.from('${frame(settings, 0, 0)}', 'hex')
  for (const [name, { first = '', again }] of Object.entries(JSON.parse(FLOODS))) {
    const unit = Buffer.from(again, 'hex')
    const many = Buffer.concat(Array(Math.ceil(65_536 / unit.length)).fill(unit))
    const server = createServer({ key, cert, ALPNProtocols: ['h2'] }, (socket) => {
      socket.on('error', () => undefined)
      socket.write(settings)
      // The client's preface, settings and request have come when it has written more than these.
      let bytes = 0
      let begun = false
      const flood = () => { while (!socket.destroyed && socket.write(many)); }
      socket.on('drain', () => setImmediate(flood))
      socket.on('data', (chunk) => {
        bytes += chunk.length
        if (begun || bytes < 120) return
        begun = true
        socket.write(Buffer.from(first, 'hex'))
        flood()
      })
    })
    server.listen(0, '127.0.0.1', () => console.log(JSON.stringify([name, server.address().port])))
  }
`

async function errorOf(work: Promise<unknown>): Promise<Error> {
  return work.then(
    () => new Error('it was answered'),
    (error: unknown) => error as Error,
  )
}

await t.test(
  'a server that floods HTTP/2 costs one request, and neither memory nor an answer of another server',
  async (t) => {
    const child = spawn(process.execPath, ['-e', script], {
      env: {
        ...process.env,
        NODE_OPTIONS: '',
        KEY: serving.key,
        CRT: serving.certificate,
        FLOODS: JSON.stringify(floods),
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    t.teardown(() => child.kill('SIGKILL'))
    const { api: honest } = await start(t, {})
    const before = process.memoryUsage()
    let done = 0
    for await (const line of createInterface(child.stdout)) {
      const [name, port] = JSON.parse(line) as [string, number]
      const api = await connectTo(t, `https://127.0.0.1:${port}`)
      // A link that moves is no silent one: the caller's own patience ends the request.
      const asked = errorOf(api.get('/x', {}, { ...once, signal: AbortSignal.timeout(flooded) }))
      t.equal((await honest.get('/', {}, once)).status, 200, `${name}: another server is heard meanwhile`)
      const error = await asked
      t.ok(['TimeoutError', 'ConnectionError'].includes(error.name), `${name}: ${String(error)}`)
      await api.close()
      if ((done += 1) === Object.keys(floods).length) break
    }
    const after = process.memoryUsage()
    const grown = (after.heapUsed + after.external - before.heapUsed - before.external) / 1_048_576
    t.ok(grown < 64, `${grown.toFixed(0)} MiB more`)
  },
)
