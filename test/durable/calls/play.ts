import { isSystemError } from '../../../src/errors.js'
import { DurableWriteError } from '../../../src/durable/errors.js'
import type { Log } from '../../../src/log.js'
import { ModelDisk } from '../../crash/model/model-disk.js'
import { ModelProcess } from '../../crash/model/model-process.js'
import { makeDirectory } from '../../crash/model/scenario.js'
import { type Call, type Fault, Recorder } from './recorder.js'
import type { Scene } from './scene.js'

/** What a call can answer that the core tells apart; any call can meet a bad disk. */
const codes: Readonly<Record<string, readonly string[]>> = {
  openPath: ['ENOENT', 'EACCES'],
  openDirectory: ['ENOENT', 'EXDEV'],
  openFile: ['ENOENT', 'ELOOP', 'EACCES'],
  openAppend: ['ENOENT'],
  openLock: ['EISDIR', 'EROFS'],
  createFile: ['ENOSPC'],
  createDirectory: ['EEXIST'],
  readLink: ['ENOENT', 'EINVAL'],
  list: ['ENOENT'],
  write: ['EDQUOT'],
  setLabel: ['EPERM', 'ENOTSUP'],
  setExtendedAttribute: ['ENOSPC', 'ENOTSUP'],
  rename: ['EINVAL', 'ENOSYS', 'EXDEV', 'ENOENT', 'EEXIST', 'EBUSY'],
  removeFile: ['ENOENT', 'EISDIR'],
  removeDirectory: ['ENOENT', 'ENOTEMPTY'],
}

const changes = /^(create|openAppend|write|set|startWriteOut|sync|rename|remove)/

const disks = new Map<Scene, ModelDisk>()

/** A disk of its own; what is on it before is made once. */
async function diskFor(scene: Scene): Promise<ModelDisk> {
  const made = disks.get(scene)
  if (made) return made.fork()
  const disk = new ModelDisk()
  for (const path of ['/etc', '/etc/pki', '/etc/manifests']) makeDirectory(disk, path, 0o755)
  const left = await scene.before?.(disk, new ModelProcess(disk))
  const found = left instanceof ModelDisk ? left : disk
  found.syncAll()
  disks.set(scene, found)
  return found.fork()
}

/** A result or an error, as one line. */
function shown(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (part instanceof DurableWriteError) {
      const { code, syscall, path, published, reason, message } = part
      return `${code} ${syscall} ${path} ${published ? 'published' : 'not published'} ${reason}: ${message}`
    }
    if (isSystemError(part)) return `${part.syscall}: ${part.code}`
    if (part instanceof Error) return String(part)
    return typeof part === 'bigint' ? String(part) : part
  })
}

interface Played {
  readonly calls: readonly Call[]
  readonly logged: readonly string[]
  readonly answer: string
}

async function play(scene: Scene, fault?: Fault): Promise<Played> {
  const process = new ModelProcess(await diskFor(scene))
  const recorder = new Recorder(process, fault)
  const logged: string[] = []
  const entry = (level: string) => (fields: object, message: string) =>
    void logged.push(`${level}: ${message} ${shown(fields)}`)
  const log: Log = { debug: entry('debug'), info: entry('info'), warn: entry('warn'), error: entry('error') }
  const answer = await scene.run(recorder.fs, log).then(
    (result) => `= ${shown(result)}`,
    (error: unknown) => `! ${shown(error)}`,
  )
  const left = process.descriptors > 0 ? ` (${process.descriptors} descriptors are left open)` : ''
  return { calls: recorder.calls, logged, answer: answer + left }
}

/** The calls, what is logged, and the answer. */
export async function callsOf(scene: Scene): Promise<string[]> {
  const { calls, logged, answer } = await play(scene)
  return [...calls.map(({ words }) => words), ...logged, answer]
}

/** Without what is the same for all that holdfast keeps beside one target. */
function briefly(words: string): string {
  return words
    .replaceAll(/\/\S*\/\.holdfast-[0-9a-f]{16}/g, '~')
    .replaceAll(/\b0{15}/g, '')
    .slice(0, 80)
}

/**
 * For each call and each errno: the answer, what is logged, and which changes are made behind it, unless they are those that are always
 * made. What several have in common is told once, above.
 */
export async function failuresOf(scene: Scene): Promise<string[]> {
  const { calls, answer } = await play(scene)
  const told = new Map<string, string>()
  const tell = (letter: string, text: string): string => {
    const known = told.get(text) ?? `${letter}${told.size + 1}`
    told.set(text, known)
    return known
  }
  const behind = (all: readonly Call[], index: number): string =>
    all
      .slice(index + 1)
      .filter(({ name }) => changes.test(name))
      .map(({ words }) => briefly(words))
      .join(', ') || 'nothing'
  const lines: string[] = []
  for (const [index, { name, words }] of calls.entries()) {
    if (name === 'close' || name === 'tryLock' || name === 'bootId') continue
    const outcomes: string[] = []
    for (const code of ['EIO', ...(codes[name] ?? [])]) {
      const failed = await play(scene, { index, code })
      const rest = behind(failed.calls, index)
      const parts = [
        ...(failed.answer === answer ? [] : [tell('answer ', failed.answer.replaceAll(code, '$CODE'))]),
        ...failed.logged.map((line) => tell('log ', line.replaceAll(code, '$CODE'))),
        ...(rest === behind(calls, index) ? [] : [tell('changes ', rest)]),
      ]
      outcomes.push(`${code}: ${parts.join(' + ') || 'the same'}`)
    }
    lines.push(`${briefly(words)}: ${outcomes.join('; ')}`)
  }
  return [...[...told].map(([text, name]) => `${name}: ${text}`), ...lines]
}
