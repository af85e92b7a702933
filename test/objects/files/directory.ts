/** A FileSource on a fresh directory. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FileSource, type FileSourceOptions } from '../../../src/objects/files/source.js'
import { recordingLog } from '../kubernetes/watching.js'
import { Recorder } from '../recorder.js'

interface Test {
  teardown(work: () => unknown): void
}

export class Directory {
  readonly recorder = new Recorder()
  readonly logged: string[] = []
  readonly root = mkdtempSync(join(tmpdir(), 'holdfast-files-'))
  readonly path = join(this.root, 'objects')

  constructor(private readonly t: Test) {
    t.teardown(() => rmSync(this.root, { recursive: true, force: true }))
    mkdirSync(this.path)
  }

  /** Without looks that nothing asks for, unless a test is about them. */
  source(options: FileSourceOptions = {}, path = this.path): FileSource {
    const log = recordingLog(this.logged)
    const source = new FileSource(path, 'kube-system', this.recorder, {
      rescan: 3_600_000,
      log,
      ...options,
    })
    this.t.teardown(() => source.close())
    return source
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.path, name), text)
  }

  /** As editors and `mv` do. */
  rename(name: string, text: string): void {
    writeFileSync(join(this.path, '.new'), text)
    renameSync(join(this.path, '.new'), join(this.path, name))
  }

  remove(name: string): void {
    rmSync(join(this.path, name))
  }

  /** The messages of the logged warnings. */
  get warnings(): string[] {
    const lines = this.logged.map((line) => JSON.parse(line) as { level: string; message: string })
    return lines.filter(({ level }) => level === 'warn').map(({ message }) => message)
  }
}

/** A Secret's YAML, whose key `a` holds the text. */
export function secret(name: string, text: string): string {
  const data = Buffer.from(text).toString('base64')
  return `apiVersion: v1\nkind: Secret\nmetadata:\n  name: ${name}\ndata:\n  a: ${data}\n`
}
