/** One node's disk, and its installations. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { leftIn } from '../judge/leftovers.js'
import { silent } from '../../../src/log.js'
import type { DurableCalls } from '../../../src/durable/index.js'
import { install } from '../../../src/static-pods/install/install.js'
import { planFromFiles } from '../../../src/static-pods/install/install-from-files.js'
import type { InstallPlan, InstallResult } from '../../../src/static-pods/install/install-plan.js'

const keys = ['secrets/a/tls.crt', 'secrets/a/tls.key', 'configmaps/b/config.yaml', 'configmaps/b/run.sh']

const certificates = ['secrets/x', 'secrets/y']

export class CrashNode {
  readonly root = mkdtempSync(join(realpathSync(tmpdir()), 'holdfast-install-'))
  readonly resources = join(this.root, 'resources')
  readonly manifests = join(this.root, 'manifests')
  readonly #source = join(this.root, 'source')
  readonly #manifest = join(this.#source, 'web-pod.yaml')
  readonly #files = join(this.#source, 'files')
  readonly #lock = join(this.root, 'installer.lock')

  clear(): void {
    for (const directory of [this.resources, this.manifests]) rmSync(directory, { recursive: true, force: true })
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true })
  }

  #writeSource(): void {
    for (const key of keys) {
      mkdirSync(join(this.#files, key, '..'), { recursive: true })
      writeFileSync(join(this.#files, key), `${key} of REVISION`)
    }
    writeFileSync(this.#manifest, podOf('web', join(this.resources, 'web-pod-REVISION')))
  }

  /** A revision with four files, a directory of certificates, and a second manifest. */
  async plan(revision: number): Promise<InstallPlan> {
    this.#writeSource()
    const plan = await planFromFiles({
      manifest: this.#manifest,
      pod: 'web-pod',
      revision: { number: revision, resourceDirectory: this.resources, resources: this.#files },
      nodeName: undefined,
    })
    const [main] = plan.manifests
    if (main === undefined) throw new Error('a plan without a manifest')
    const second = {
      ...main,
      name: 'watch-pod.yaml',
      content: Buffer.from(podOf('watch', '/').replace('REVISION', String(revision))),
    }
    const lasting = certificates.map((name) => ({
      target: join(this.resources, 'certs', name),
      files: { 'tls.crt': `crt ${name} ${revision}`, 'tls.key': `key ${name} ${revision}` },
    }))
    return { ...plan, lasting, manifests: [second, main] }
  }

  async install(
    revision: number,
    durable: DurableCalls,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<InstallResult> {
    return install(await this.plan(revision), {
      manifestDirectory: this.manifests,
      manifestLock: this.#lock,
      requireProven: false,
      allowOlder: false,
      checkHostPaths: false,
      warnOfHostPaths: false,
      durable,
      signal,
      log: silent,
      timeLeft: () => 0,
    })
  }

  /** What a kubelet that looks now would meet that it must not; empty if all is well. `among`: revisions that may be live. */
  faults(among: readonly (number | undefined)[]): string[] {
    const faults: string[] = []
    const live = this.#live('web-pod.yaml', faults)
    if (!among.includes(live)) faults.push(`revision ${live} is live`)
    const watching = this.#live('watch-pod.yaml', faults)
    if (!among.includes(watching)) faults.push(`the second manifest is of revision ${watching}`)
    if (live !== undefined) {
      const directory = join(this.resources, `web-pod-${live}`)
      for (const key of keys) {
        if (readIfThere(join(directory, key)) !== `${key} of ${live}`)
          faults.push(`${key} of revision ${live} is not whole`)
      }
      if (readIfThere(join(directory, 'web-pod.yaml')) === undefined) faults.push('the copy of the manifest is missing')
    }
    for (const name of certificates) {
      const [crt, key] = ['crt', 'key'].map((kind) => readIfThere(join(this.resources, 'certs', name, `tls.${kind}`)))
      if (crt?.replace('crt', '') !== key?.replace('key', '')) faults.push(`${name} is mixed: ${crt}, ${key}`)
    }
    const strangers = namesIn(this.manifests).filter((name) => !name.startsWith('.') && !name.endsWith('-pod.yaml'))
    if (strangers.length > 0) faults.push(`kubelet would read ${strangers.join()}`)
    return faults
  }

  #live(name: string, faults: string[]): number | undefined {
    const text = readIfThere(join(this.manifests, name))
    if (text === undefined) return undefined
    try {
      return Number((JSON.parse(text) as { metadata: { labels: { revision: string } } }).metadata.labels.revision)
    } catch {
      faults.push(`${name} is torn`)
      return undefined
    }
  }

  /** Staging, and records that belong to nothing. */
  leftovers(): string[] {
    return [this.resources, this.manifests, join(this.resources, 'certs/secrets')].flatMap((directory) => {
      const names = namesIn(directory)
      const targets = names.filter((name) => !name.startsWith('.') && name !== 'certs')
      return leftIn(names, new Map(targets.map((name) => [name, { records: [0, 1], generations: 0 }])))
    })
  }
}

function podOf(name: string, path: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { revision: 'REVISION' } },
    spec: { containers: [{ name, image: 'x:1' }], volumes: [{ name: 'r', hostPath: { path } }] },
  })
}

function readIfThere(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}

function namesIn(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : []
}
