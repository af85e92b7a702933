/** What is asked of a golden disk: looks, and the next `replace` or `write`, `sync` and `install`, each from the disk as it was left. */
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { runInProcess } from '../../cli/in-process.js'
import { contentAt, dataOf, entriesAt } from '../judge/directory.js'
import { otherFileSystem } from '../histories/places.js'
import { extendedAttribute } from '../histories/libc.js'
import { access, byDefault } from '../model/access-lists.js'
import { nameBeside } from '../judge/names.js'
import { manifestLock, places, pod, podOf } from '../model/static-pods/node.js'
import { type Answer, bootId, type GoldenDisk, type GoldenTarget, lay } from './disk.js'
import { refuseOtherRoots } from './own-root.js'

/** Where the questions' own files are. */
export const own = 'golden'
const configuration = `/${own}/holdfast.yaml`
/** After the last call, and before the holds and moves of a few seconds that it left are over. */
const later = 1000

let now = 0
const RealDate = Date
/** The clock on the wall stands still. */
globalThis.Date = class extends RealDate {
  constructor(...given: [] | [number | string]) {
    super(given[0] ?? now)
  }

  static override now(): number {
    return now
  }
} as DateConstructor

/** Answers of all that can be asked of this disk, in a root that is its own. */
export async function answersOf(disk: GoldenDisk, number: number): Promise<Answer[]> {
  now = disk.now + later
  const asking = new Asking(disk, number)
  if (disk.targets.length === 0) await asking.askOfPod()
  else await asking.askOfTargets()
  return asking.answers
}

class Asking {
  readonly answers: Answer[] = []
  #before = new Map<string, string>()
  readonly #roots: readonly string[]
  readonly #directories: readonly GoldenTarget[]

  constructor(
    readonly disk: GoldenDisk,
    /** Says which flags, and which content. */
    readonly number: number,
  ) {
    const tops = disk.entries.map(({ path }) => path.split('/')[0] ?? '')
    this.#roots = [...new Set([...tops, own])]
    const directories = disk.targets.filter(({ form }) => form !== 'file')
    // A configuration names no directory inside another one, and none that another one moves from.
    this.#directories = directories.filter(
      ({ path }) => !directories.some((one) => path.startsWith(`${one.path}/`) || one.movedFrom === path),
    )
  }

  async askOfTargets(): Promise<void> {
    const { targets } = this.disk
    const isConfigured = this.#directories.length > 0
    this.#fresh()
    if (isConfigured) {
      await this.#ask(['status', '--config', configuration, '-o', 'json'])
      await this.#ask(['verify', '--config', configuration, '-o', 'json'])
    }
    for (const { path } of targets.slice(0, 2)) await this.#ask(['history', path, '-o', 'json'])
    for (const target of targets.slice(0, 2)) await this.#askToReplace(target)
    if (!isConfigured) return
    this.#fresh()
    await this.#ask(['sync', '--config', configuration, ...(this.number % 3 === 0 ? ['--release'] : [])])
    await this.#ask(['verify', '--config', configuration, '-o', 'json'])
  }

  async #askToReplace({ path, form }: GoldenTarget): Promise<void> {
    const flags = this.number % 4 === 2 ? ['--release', '--force'] : []
    if (form === 'file') {
      const file = `/${own}/file`
      const found = contentAt(path) === '' ? undefined : readFileSync(path)
      writeFileSync(file, this.number % 2 === 0 || found === undefined ? 'the next content\n' : found)
      await this.#ask(['write', path, '--from', file, ...flags])
      return
    }
    const from = `/${own}/next`
    rmSync(from, { recursive: true, force: true })
    mkdirSync(from)
    const isCopied = this.number % 2 === 1 && copyFiles(dataOf(path) === undefined ? path : join(path, '..data/'), from)
    if (!isCopied) {
      writeFileSync(join(from, 'key'), 'the next key\n')
      writeFileSync(join(from, 'added'), 'the next content\n')
    }
    await this.#ask(['replace', path, '--from', from, ...(this.number % 4 > 0 ? ['--replace-foreign'] : []), ...flags])
  }

  async askOfPod(): Promise<void> {
    const { resourceDirectory, manifestDirectory } = places
    const revision = this.number % 2 === 0 ? 8 : 7
    const manifest = `/${own}/${pod}.yaml`
    this.#fresh()
    writeFileSync(manifest, JSON.stringify(podOf(revision)))
    mkdirSync(`/${own}/resources/secrets/tls`, { recursive: true })
    writeFileSync(`/${own}/resources/secrets/tls/tls.key`, 'the next key\n')
    for (const path of [join(manifestDirectory, `${pod}.yaml`), join(resourceDirectory, `${pod}-7`)])
      await this.#ask(['history', path, '-o', 'json'])
    const where = ['--resource-dir', resourceDirectory, '--pod-manifest-dir', manifestDirectory]
    await this.#ask(['prune', ...where, '--static-pod-name', pod, '--keep', '1', '--dry-run', '-o', 'json'])
    const what = ['--resources', `/${own}/resources`, '--revision', `${revision}`]
    const lock = ['--pod-manifests-lock-file', manifestLock]
    await this.#ask(['install', manifest, ...where, ...what, ...lock, '-o', 'json'])
    await this.#ask(['history', join(manifestDirectory, `${pod}.yaml`), '-o', 'json'])
    await this.#ask(['prune', ...where, '--static-pod-name', pod, '--keep', '1', '--lock-timeout', '0', '-o', 'json'])
  }

  /** The disk as it was left, and the questions' own files. */
  #fresh(): void {
    clear(this.#roots)
    lay(this.disk, '/', bootId)
    mkdirSync(`/${own}/objects`, { recursive: true })
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'next', namespace: 'golden' } }
    const stringData = { key: 'the key of the source\n', 'tls.crt': 'the certificate of the source\n' }
    writeFileSync(`/${own}/objects/next.yaml`, JSON.stringify({ ...secret, stringData }))
    const directories = this.#directories.map(({ path, form, history, movedFrom }) => ({
      ...{ path, publish: form, contents: [{ secret: 'next' }] },
      ...(history !== undefined && { history }),
      ...(movedFrom !== undefined && { movedFrom, movedFromKeep: '3s' }),
    }))
    const document = {
      ...{ apiVersion: 'holdfast.dev/v1alpha1', kind: 'AgentConfiguration', stateDirectory: `/${own}/state` },
      source: { namespace: 'golden', files: { path: `/${own}/objects` } },
      directories,
    }
    writeFileSync(configuration, JSON.stringify(document))
    this.#before = this.#seen()
  }

  async #ask(args: readonly string[]): Promise<void> {
    const { code, stdout, stderr } = await runInProcess(args)
    const after = this.#seen()
    const gone = [...this.#before].filter(([path, entry]) => after.get(path) !== entry)
    const come = [...after].filter(([path, entry]) => this.#before.get(path) !== entry)
    this.#before = after
    const changed = [...gone.map(([, entry]) => `- ${entry}`), ...come.map(([, entry]) => `+ ${entry}`)]
    this.answers.push({ asked: args.join(' '), code, said: plain(stdout + stderr), changed: changed.map(plain).sort() })
  }

  /** The disk's entries, one line each; of a record only that it is there, since its words are the program's own. */
  #seen(): Map<string, string> {
    const seen = new Map<string, string>()
    for (const name of this.#roots) {
      if (name === own) continue
      for (const [inner, entry] of entriesAt(`/${name}`)) {
        const path = join('/', name, inner)
        const { kind } = nameBeside(basename(path))
        const lists =
          entry.type === 'symlink' ? [] : [access, byDefault].filter((list) => extendedAttribute(path, list))
        const data = kind === 'record' || entry.type === 'directory' ? '' : ` <${entry.data}>`
        const mode = entry.type === 'symlink' ? '' : ` ${entry.mode.toString(8)}`
        seen.set(
          path,
          `${path} ${entry.type}${mode} ${entry.uid}:${entry.gid}${lists.map((list) => ` ${list}`).join('')}${data}`,
        )
      }
    }
    return seen
  }
}

const laid = new Set<string>()

/** All that an earlier disk has left, and what stands here under a name of this one. */
function clear(roots: readonly string[]): void {
  refuseOtherRoots()
  const { dev } = lstatSync('/')
  for (const name of roots) laid.add(name)
  for (const name of laid) {
    const found = lstatSync(`/${name}`, { throwIfNoEntry: false })
    if (found && found.dev !== dev && name !== otherFileSystem) throw new Error(`/${name} is mounted from elsewhere`)
    // A file system is mounted there.
    const paths = name === otherFileSystem ? readdirSync(`/${name}`).map((inner) => `/${name}/${inner}`) : [`/${name}`]
    for (const path of paths) rmSync(path, { recursive: true, force: true })
  }
}

/** Without what differs between two runs of one build: random parts of names, durations, and versions that come from a file's times. */
function plain(text: string): string {
  return text
    .replace(/(\.holdfast-[0-9a-f]{16}(?:\.\d+)?|\.\.\d+)-[0-9a-f]{16}\b/g, '$1-…')
    .replace(/\b(milliseconds=)[\d.]+/g, '$1…')
    .replace(/\bfile:[0-9a-f]{32}\b/g, 'file:…')
}

/** Whether there were any. */
function copyFiles(from: string, to: string): boolean {
  const files = [...entriesAt(from)].filter(
    ([path, { type }]) => type === 'file' && path !== '' && !path.startsWith('..'),
  )
  for (const [path, { data }] of files) {
    mkdirSync(dirname(join(to, path)), { recursive: true })
    writeFileSync(join(to, path), data, 'latin1')
  }
  return files.length > 0
}
