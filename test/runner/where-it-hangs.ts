/**
 * What a process of tests that does not end is doing. Node's inspector says it: a thread of its own takes the question, also while the
 * process spins, and so no process pays for it that ends by itself.
 */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { get } from 'node:http'
import type { Debugger, Runtime } from 'node:inspector'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { readProc } from '../processes.js'

/** For the runner's words to Node: SIGUSR1 opens the inspector at any free port. */
export const inspectable = '--inspect-port=0'

/** Milliseconds that the inspector is given; one in a process that waits pauses nowhere. */
const patience = 10_000
const untilItPauses = 2_000

/** The resources that keep it alive, the programs that it has started, and its stack. */
export async function whereItHangs(child: ChildProcess): Promise<string> {
  const ask = new AbortController()
  const silence = sleep(patience, ['It does not answer its inspector'], { signal: ask.signal, ref: false })
  silence.catch(() => undefined)
  const said = await Promise.race([inspected(child, ask.signal), silence]).catch((error: unknown) => [String(error)])
  ask.abort()
  return [...said, ...programsOf(child).map((line) => `It has started: ${line}`)].join('\n')
}

async function inspected(child: ChildProcess, signal: AbortSignal): Promise<string[]> {
  const url = listening(child, signal)
  child.kill('SIGUSR1')
  const inspector = await Inspector.open(await url)
  try {
    const expression = 'process.getActiveResourcesInfo().join()'
    const { result } = await inspector.call<Runtime.EvaluateReturnType>('Runtime.evaluate', { expression })
    const urls = new Map<string, string>()
    inspector.each('Debugger.scriptParsed', (script) => {
      const { scriptId, url } = script as Debugger.ScriptParsedEventDataType
      urls.set(scriptId, url)
    })
    await inspector.call('Debugger.enable')
    const paused = inspector.next<Debugger.PausedEventDataType>('Debugger.paused')
    await inspector.call('Debugger.pause')
    const found = await Promise.race([paused, sleep(untilItPauses, undefined, { signal })])
    const stack = found?.callFrames.map(({ functionName, location: { scriptId, lineNumber, columnNumber = 0 } }) => {
      return `at ${functionName || '<anonymous>'} (${urls.get(scriptId)}:${lineNumber + 1}:${columnNumber + 1})`
    })
    return [`It waits for: ${result.value || 'nothing'}`, ...(stack ?? ['It runs no JavaScript'])]
  } finally {
    inspector.close()
  }
}

/** The address that Node prints where it opens its inspector. */
async function listening({ stderr }: ChildProcess, signal: AbortSignal): Promise<string> {
  let text = ''
  for (;;) {
    const [more] = (await once(stderr as NodeJS.ReadableStream, 'data', { signal })) as [string]
    text += more
    const found = /Debugger listening on ws:(\S+)\n/.exec(text)?.[1]
    if (found !== undefined) return `http:${found}`
  }
}

function programsOf({ pid }: ChildProcess): string[] {
  const children = readProc(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean)
  return children.map((one) => `${one} ${readProc(`/proc/${one}/cmdline`).replaceAll('\0', ' ')}`)
}

/** One session of the inspector's protocol, over as much of RFC 6455 as it takes. */
class Inspector {
  /** Who takes an event by its name, or an answer by the number of its call. */
  readonly #takers = new Map<string, (value: unknown) => void>()
  #text = Buffer.alloc(0)
  #calls = 0

  private constructor(private readonly socket: Duplex) {
    socket.on('data', (bytes: Buffer) => this.#read(bytes)).on('error', () => undefined)
  }

  static async open(url: string): Promise<Inspector> {
    const headers = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'aG9sZGZhc3QgcnVubmVyIQ==',
    }
    const [, socket] = (await once(get(url, { headers }), 'upgrade')) as [unknown, Duplex]
    return new Inspector(socket)
  }

  each(name: string, take: (value: unknown) => void): void {
    this.#takers.set(name, take)
  }

  next<T>(name: string): Promise<T> {
    return new Promise<unknown>((resolve) => this.each(name, resolve)) as Promise<T>
  }

  call<T>(method: string, params: object = {}): Promise<T> {
    const id = (this.#calls += 1)
    const text = Buffer.from(JSON.stringify({ id, method, params }))
    // A whole text, masked by zeros, its length in two bytes.
    const head = Buffer.from([0x81, 0xfe, text.length >> 8, text.length & 0xff, 0, 0, 0, 0])
    const answer = this.next<T>(String(id))
    this.socket.write(Buffer.concat([head, text]))
    return answer
  }

  close(): void {
    this.socket.destroy()
  }

  #read(bytes: Buffer): void {
    this.#text = Buffer.concat([this.#text, bytes])
    for (;;) {
      const short = (this.#text[1] ?? 0) & 0x7f
      const head = short === 127 ? 10 : short === 126 ? 4 : 2
      if (this.#text.length < head) return
      const length =
        short === 127 ? Number(this.#text.readBigUInt64BE(2)) : short === 126 ? this.#text.readUInt16BE(2) : short
      if (this.#text.length < head + length) return
      const message = JSON.parse(this.#text.toString('utf8', head, head + length)) as Record<string, unknown>
      this.#text = this.#text.subarray(head + length)
      const { id, method, result, params } = message
      this.#takers.get(String(id ?? method))?.(result ?? params)
    }
  }
}
