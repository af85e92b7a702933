/**
 * A server in a separate process that writes HTTP/2 frame by frame, as no library would: prints its port, and sends each stream that is
 * opened a head and then one line, `SIZE` bytes in a frame, `PAUSE` milliseconds between two frames (0: all at once).
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { serving } from './connected.js'

const script = `
  const { createServer } = require('node:tls')
  const frame = (type, flags, stream, payload) => {
    const head = Buffer.alloc(9)
    head.writeUIntBE(payload.length, 0, 3)
    head[3] = type
    head[4] = flags
    head.writeUInt32BE(stream, 5)
    return Buffer.concat([head, payload])
  }
  const preface = 24
  const { KEY: key, CRT: cert } = process.env
  const text = 'x'.repeat(Number(process.env.LENGTH)) + '\\n'
  const [size, pause] = [Number(process.env.SIZE), Number(process.env.PAUSE)]
  const server = createServer({ key, cert, ALPNProtocols: ['h2'] }, (socket) => {
    socket.on('error', () => undefined)
    let received = Buffer.alloc(0)
    let started = false
    socket.write(frame(4, 0, 0, Buffer.alloc(0)))
    const answer = async (stream) => {
      socket.write(frame(1, 4, stream, Buffer.from([0x88])))
      const frames = []
      for (let at = 0; at < text.length; at += size) frames.push(frame(0, 0, stream, Buffer.from(text.slice(at, at + size))))
      // The client opens the connection's window as soon as it has the settings.
      await new Promise((resolve) => setTimeout(resolve, 100))
      if (pause === 0) socket.write(Buffer.concat(frames))
      else for (const each of frames) {
        socket.write(each)
        await new Promise((resolve) => setTimeout(resolve, pause))
      }
    }
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      if (!started && received.length >= preface) {
        started = true
        received = received.subarray(preface)
      }
      while (started && received.length >= 9) {
        const length = received.readUIntBE(0, 3)
        if (received.length < 9 + length) return
        const [type, flags, stream] = [received[3], received[4], received.readUInt32BE(5)]
        if (type === 4 && (flags & 1) === 0) socket.write(frame(4, 1, 0, Buffer.alloc(0)))
        if (type === 6 && (flags & 1) === 0) socket.write(frame(6, 1, 0, received.subarray(9, 17)))
        if (type === 1) void answer(stream)
        received = received.subarray(9 + length)
      }
    })
  })
  server.listen(0, '127.0.0.1', () => console.log(server.address().port))
`

export interface Frames {
  /** Characters of the line. */
  readonly length: number
  readonly size: number
  readonly pause: number
}

export async function startRawServer(
  t: { teardown(work: () => unknown): void },
  { length, size, pause }: Frames,
): Promise<string> {
  const child = spawn(process.execPath, ['-e', script], {
    env: {
      ...process.env,
      ...{ NODE_OPTIONS: '', KEY: serving.key, CRT: serving.certificate },
      ...{ LENGTH: String(length), SIZE: String(size), PAUSE: String(pause) },
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const { value: port } = (await createInterface(child.stdout)[Symbol.asyncIterator]().next()) as { value: string }
  return `https://127.0.0.1:${port}`
}
