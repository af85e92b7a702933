import { spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { closeSync, mkdirSync, openSync, statSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { createLogger } from '../../src/cli/output/logger.js'
import { testIo } from './in-process.js'
import { ProgressLine, Reading } from '../../src/cli/output/progress.js'
import { executable } from '../project.js'
import { ended, scratch } from './holdfast.js'

const mebibyte = 1024 * 1024
const fileSize = 200 * mebibyte
const streamSize = 64 * mebibyte
/** Resident above a command that publishes nothing to speak of: below each file as a whole, and above what V8 has not collected yet on a busy machine. */
const mostMemory = 40 * mebibyte

/** The last lines of standard error: the most memory that the process had at once, and how much it read and wrote. */
const reporter = `import { readFileSync, writeSync } from 'node:fs'
process.on('exit', () => {
  const memory = readFileSync('/proc/self/status', 'utf8').match(/VmHWM:.*\\n/)[0]
  writeSync(2, memory + readFileSync('/proc/self/io', 'utf8').match(/rchar: .*\\nwchar: .*\\n/)[0])
})`

interface Figures {
  /** All of them bytes. */
  readonly memory: number
  readonly read: number
  readonly written: number
}

async function memoryOf(args: readonly string[], input?: string): Promise<number> {
  return (await figuresOf(args, input)).memory
}

async function figuresOf(args: readonly string[], input?: string): Promise<Figures> {
  const url = `data:text/javascript,${encodeURIComponent(reporter)}`
  const stdin = input === undefined ? 'ignore' : openSync(input, 'r')
  const command = ['-i', `PATH=${process.env.PATH ?? ''}`, process.execPath, '--import', url, executable, ...args]
  const child = spawn('env', command, { stdio: [stdin, 'pipe', 'pipe'] })
  if (typeof stdin === 'number') closeSync(stdin)
  const { code, stderr } = await ended(child)
  const [, kibibytes, read, written] = /VmHWM:\s*(\d+) kB\nrchar: (\d+)\nwchar: (\d+)\n$/.exec(stderr) ?? []
  if (code !== 0 || kibibytes === undefined) throw new Error(`exit ${String(code)}: ${stderr}`)
  return { memory: Number(kibibytes) * 1024, read: Number(read), written: Number(written) }
}

await t.test('write streams a file of 200 MiB in the memory of its pieces', async (t) => {
  const root = scratch(t)
  const from = join(root, 'from')
  const empty = join(root, 'empty')
  mkdirSync(from)
  mkdirSync(empty)
  writeFileSync(join(empty, 'file'), '')
  const large = join(from, 'large')
  const file = openSync(large, 'w')
  const piece = Buffer.alloc(mebibyte, 'no file of zeros ')
  for (let at = 0; at < fileSize; at += piece.length) writeSync(file, piece)
  closeSync(file)

  const idle = await memoryOf(['replace', join(root, 'small'), '--from', empty])
  const replaced = await memoryOf(['replace', join(root, 'target'), '--from', from])
  t.equal(statSync(join(root, 'target', 'large')).size, fileSize)
  t.ok(replaced - idle < mostMemory, `replace: ${(replaced - idle) / mebibyte} MiB`)
  // Enough to show it, and a third of the time.
  truncateSync(large, streamSize)
  const written = await memoryOf(['write', join(root, 'file')], large)
  t.equal(statSync(join(root, 'file')).size, streamSize)
  t.ok(written - idle < mostMemory, `write: ${(written - idle) / mebibyte} MiB`)
})

await t.test('write --from reads a file once, twice where one is there, and writes it once', async (t) => {
  const root = scratch(t)
  const size = 16 * mebibyte
  const [from, small] = [join(root, 'from'), join(root, 'small')]
  writeFileSync(from, Buffer.alloc(size, 'no file of zeros '))
  writeFileSync(small, 'small')
  const least = await figuresOf(['write', join(root, 'least'), '--from', small])
  const most = await figuresOf(['write', join(root, 'file'), '--from', from])
  t.equal(statSync(join(root, 'file')).size, size)
  const [read, written] = [most.read - least.read, most.written - least.written]
  t.ok(read < 1.1 * size, `${read / mebibyte} MiB read of ${size / mebibyte}`)
  t.ok(written < 1.1 * size, `${written / mebibyte} MiB written of ${size / mebibyte}`)
  writeFileSync(from, Buffer.alloc(size, 'other '))
  const again = await figuresOf(['write', join(root, 'file'), '--from', from])
  // And once the present content.
  t.ok(again.read - least.read < 3.1 * size, `${(again.read - least.read) / mebibyte} MiB read, to replace it`)
})

await t.test('replace --from reads the content of a new target once, and of one that is there twice', async (t) => {
  const root = scratch(t)
  const size = 16 * mebibyte
  const [from, small, target] = [join(root, 'from'), join(root, 'small'), join(root, 'target')]
  for (const directory of [from, small]) mkdirSync(directory)
  writeFileSync(join(from, 'file'), Buffer.alloc(size, 'no file of zeros '))
  writeFileSync(join(small, 'file'), 'small')
  const least = await figuresOf(['replace', join(root, 'least'), '--from', small])
  const first = await figuresOf(['replace', target, '--from', from])
  t.equal(statSync(join(target, 'file')).size, size)
  t.ok(first.read - least.read < 1.1 * size, `new: ${(first.read - least.read) / mebibyte} MiB read`)
  t.ok(first.written - least.written < 1.1 * size, `new: ${(first.written - least.written) / mebibyte} MiB written`)
  writeFileSync(join(from, 'file'), Buffer.alloc(size, 'other '))
  const second = await figuresOf(['replace', target, '--from', from])
  // And once the present content.
  t.ok(second.read - least.read < 3.1 * size, `replaced: ${(second.read - least.read) / mebibyte} MiB read`)
})

await t.test('write shows progress on a terminal, and nothing elsewhere', async (t) => {
  const lines = new EventEmitter()
  const shown: string[] = []
  const output = (isTTY: boolean) => ({
    isTTY,
    columns: 80,
    write(text: string): void {
      shown.push(text)
      lines.emit('line')
    },
  })
  const reading = new Reading(400)
  await new ProgressLine(output(false), 1).during(reading.describe, async () => {
    reading.add(100)
    // A timer that was set later, and is as long: the other would have come first.
    await setTimeout(5)
  })
  t.strictSame(shown, [])
  await new ProgressLine(output(true), 1).during(reading.describe, async () => {
    await once(lines, 'line')
    reading.add(300)
    await once(lines, 'line')
    await once(lines, 'line')
  })
  const clear = '\r\u001b[K'
  t.strictSame(shown.slice(0, 3), ['publishing: 12 % ...', clear, 'publishing: 50 % ...'])
  t.equal(shown.at(-1), clear)
  t.equal(new Reading().describe(), undefined)
  shown.length = 0
  await new ProgressLine({ ...output(true), columns: 15 }, 1).during(reading.describe, () => once(lines, 'line'))
  t.equal(shown[0], 'publishing: 50', 'a narrow terminal does not wrap the line')

  const { io } = testIo()
  const stderr = output(true)
  const log = createLogger({ ...io, stderr }, { logLevel: 'info', logFormat: 'text' })
  shown.length = 0
  await new ProgressLine(stderr, 1).during(reading.describe, async () => {
    await once(lines, 'line')
    log.info({}, 'the sentence')
  })
  t.equal(shown[shown.findIndex((text) => text.includes('the sentence')) - 1], clear, 'a line of the log stands alone')
})
