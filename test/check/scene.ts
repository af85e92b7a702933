/** `holdfast check` on the test's own disk: in this process, or in a separate one, of another user or under strace. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Finding, Status } from '../../src/check/findings.js'
import { runInProcess } from '../cli/in-process.js'
import { environment, executableForOthers } from '../crash/syscalls/distribution.js'
import { scratch } from '../durable/scratch.js'

export interface CheckDocument {
  readonly checks: readonly Finding[]
  readonly faults: number
  readonly warnings: number
}

export interface Ran {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  /** The command that starts the program: `setpriv --reuid=1000`, `strace …`, `unshare …`; `[]` for just a separate process. */
  readonly under?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

export const isRoot = process.geteuid?.() === 0
export const needsRoot = isRoot ? false : 'mounting and changing users needs root: run by CI'

export class Scene {
  readonly root: string
  readonly configuration: string
  #program: string | undefined

  /** The target is `ROOT/parent/certs`, of one Secret out of a file. */
  constructor(t: Test, directory: object = {}, more: object = {}) {
    this.root = scratch(t)
    this.configuration = join(this.root, 'holdfast.yaml')
    mkdirSync(this.parent)
    mkdirSync(this.path('objects'))
    this.put('serving-cert', { 'tls.crt': 'x' })
    this.configure([{ path: this.target, contents: [{ secret: 'serving-cert' }], ...directory }], more)
  }

  /** Made for a first separate process, which may be another user's. */
  get #executable(): string {
    return (this.#program ??= executableForOthers(this.root))
  }

  get parent(): string {
    return this.path('parent')
  }

  get target(): string {
    return join(this.parent, 'certs')
  }

  path(name: string): string {
    return join(this.root, name)
  }

  configure(directories: readonly object[], more: object = {}): void {
    const document = {
      apiVersion: 'holdfast.dev/v1alpha1',
      kind: 'AgentConfiguration',
      stateDirectory: this.path('state'),
      source: { namespace: 'demo', files: { path: this.path('objects') } },
      directories,
      ...more,
    }
    writeFileSync(this.configuration, JSON.stringify(document, undefined, 2))
  }

  put(name: string, stringData: Record<string, string>): void {
    const object = { apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData }
    writeFileSync(this.path(`objects/${name}.json`), JSON.stringify(object))
  }

  async run(command: string, args: readonly string[] = [], { under, env = {} }: RunOptions = {}): Promise<Ran> {
    const line = [command, '--config', this.configuration, ...args]
    if (under === undefined) return runInProcess(line, { env })
    const words = [...under, process.execPath, this.#executable, ...line]
    // Without tap's loader, which writes to the project's directory at the end, also as another user.
    const child = spawn('env', ['-u', 'NODE_OPTIONS', ...words], {
      env: { ...environment, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const text = { stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text.stdout += chunk))
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (text.stderr += chunk))
    const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
    return { code, signal, ...text }
  }

  /** Runs `holdfast check`; the exit code must be what the findings say. */
  async check(t: Test, options: RunOptions = {}, args: readonly string[] = []): Promise<Checked> {
    const { code, stdout, stderr } = await this.run('check', ['-o', 'json', ...args], options)
    t.ok([0, 4].includes(code ?? -1), `exit ${code}: ${stderr}`)
    const checked = new Checked(this.target, JSON.parse(stdout) as CheckDocument)
    t.equal(code, checked.document.faults > 0 ? 4 : 0)
    t.equal(stderr.replace(/^strace: .*\n/gm, ''), '', 'nothing on standard error')
    return checked
  }
}

export class Checked {
  constructor(
    private readonly target: string,
    readonly document: CheckDocument,
  ) {}

  /** The findings of this check; of the target, unless another subject is named. */
  all(check: string, subject = this.target): Finding[] {
    return this.document.checks.filter((one) => one.check === check && one.subject === subject)
  }

  one(check: string, subject?: string): Finding {
    const [found, second] = this.all(check, subject)
    if (found === undefined || second !== undefined) {
      throw new Error(`not exactly one finding "${check}": ${JSON.stringify(this.document.checks)}`)
    }
    return found
  }

  /** `CHECK: FOUND` of all that have this status. */
  with(status: Status): string[] {
    return this.document.checks
      .filter((finding) => finding.status === status)
      .map(({ check, found }) => `${check}: ${found}`)
  }
}

/** Every entry below a directory: kind, inode, mode, owner, times of change, content. Equal before and after: untouched. */
export function snapshot(directory: string): Record<string, string> {
  const found: Record<string, string> = {}
  for (const entry of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    const path = join(directory, entry)
    const { ino, mode, uid, gid, mtimeMs, ctimeMs } = lstatSync(path)
    const kind = lstatSync(path)
    const content = kind.isFile() ? readFileSync(path, 'base64') : kind.isSymbolicLink() ? readlinkSync(path) : ''
    found[entry] = [ino, mode, uid, gid, mtimeMs, ctimeMs, content].join(' ')
  }
  return found
}
