import { silent, type Log } from '../../log.js'
import { sameAccess, accessSnapshot, type AccessSnapshot, type ClusterAccess } from './access.js'
import { fingerprint } from '../../regular-file.js'
import { CredentialFiles, type ReadFile } from './credential-files.js'
import { authorityProblem } from '../../x509/authorities.js'
import { certificateProblem, keyMatches, privateKeyProblem } from '../../x509/certificates.js'
import { proxyFromEnvironment, type Environment } from '../connection/proxy.js'
import { pluginEnvironment, runExecPlugin, type ExecCredential } from './exec-plugin.js'
import { tokenProblem, type ContextSettings, type ExecPluginSettings } from './kubeconfig.js'
import type { Material } from './kubeconfig-file.js'
import { shownTo } from './plain-http.js'
import { programPath } from '../../program-path.js'
import type { Obeyed } from '../../trust.js'

/** Milliseconds. */
export interface AccessTiming {
  /** The least time between two looks (stat) at the files. */
  readonly look: number
  /** The time after which each file is read again, even if it seems unchanged (a network file system may not say so). */
  readonly reread: number
  /** A credential plugin is killed after this. */
  readonly exec: number
  /** After a 401, a credential plugin is run again no more often than this. */
  readonly renew: number
}

const accessTiming: AccessTiming = { look: 1_000, reread: 60_000, exec: 60_000, renew: 10_000 }

/** Where the settings come from: kubeconfigs, or a service account. */
export interface SettingsSource {
  readonly origin: string
  /** Files whose change means that `read` may answer differently. */
  readonly paths: readonly string[]
  /** Each file by way of these, so that one which is broken later leaves its last good content in force. */
  read(files: CredentialFiles): Promise<ContextSettings>
}

export interface LiveAccessOptions {
  readonly environment: Environment
  readonly log?: Log
  readonly timing?: Partial<AccessTiming>
  /** Reads the files; then what does not fit now is an error, and nothing earlier stays in force. */
  readonly read?: ReadFile
  /** Called before each read of a file that a kubeconfig names, and each run of a credential plugin; its error keeps holdfast from that. */
  readonly obey?: (obeyed: Obeyed) => Promise<void>
}

interface LoadedCredentials {
  readonly settings: ContextSettings
  readonly authority: string | undefined
  readonly certificate: { readonly chain: string; readonly key: string } | undefined
  readonly authorization: string | undefined
  readonly proxy: URL | undefined
  /** Every file behind it, with the answer of a stat just before its read. */
  readonly fingerprints: ReadonlyMap<string, string>
}

export class LiveAccess implements ClusterAccess {
  readonly #files: CredentialFiles
  readonly #timing: AccessTiming
  #source: SettingsSource | undefined
  #loaded: LoadedCredentials | undefined
  #snapshot: AccessSnapshot | undefined
  #credential: ExecCredential | undefined
  #credentialOf: ExecPluginSettings | undefined
  /** When the plugin was run, and how long the credential was to last then: milliseconds. */
  #credentialObtained = 0
  #credentialLifetime = Infinity
  // By performance.now(): a clock that is set back must not stop anything from being followed.
  #lookedAt = -Infinity
  #readAt = -Infinity
  #renewedAt = -Infinity
  #pending: Promise<AccessSnapshot> | undefined
  #warning: string | undefined

  /** `find` is called until the settings that it leads to could be read: an agent may start before its kubeconfig is there. */
  constructor(
    private readonly find: () => Promise<SettingsSource>,
    private readonly options: LiveAccessOptions,
  ) {
    this.#files = new CredentialFiles(options.log ?? silent, options.read)
    this.#timing = { ...accessTiming, ...options.timing }
  }

  /** Reads once, so that an error shows at once (KubeconfigError). */
  async open(): Promise<this> {
    this.#loaded = await this.#load()
    return this
  }

  get origin(): string {
    return this.#source?.origin ?? 'not loaded'
  }

  get namespace(): string | undefined {
    return this.#loaded?.settings.namespace
  }

  async current(): Promise<AccessSnapshot> {
    const current = this.#snapshot && !this.#execExpired() && performance.now() - this.#lookedAt < this.#timing.look
    if (current && this.#snapshot) return this.#snapshot
    return this.#shared(() => this.#refresh(false))
  }

  async renew(rejected: AccessSnapshot): Promise<AccessSnapshot> {
    // Many requests are refused at once when a token expires; one renewal serves them all.
    await this.#pending?.catch(() => undefined)
    if (this.#snapshot && !sameAccess(this.#snapshot, rejected)) return this.#snapshot
    return this.#shared(() => this.#refresh(true))
  }

  async differs(rejected: AccessSnapshot): Promise<boolean> {
    if (this.#snapshot && !sameAccess(this.#snapshot, rejected)) return true
    return this.#loaded !== undefined && this.#changed(this.#loaded)
  }

  files(): readonly string[] {
    return [...(this.#loaded?.fingerprints.keys() ?? [])]
  }

  #shared(work: () => Promise<AccessSnapshot>): Promise<AccessSnapshot> {
    this.#pending ??= work().finally(() => (this.#pending = undefined))
    return this.#pending
  }

  async #refresh(rejected: boolean): Promise<AccessSnapshot> {
    const now = performance.now()
    const due = rejected || now - this.#readAt >= this.#timing.reread
    if (!this.#loaded || due || (await this.#changed(this.#loaded))) {
      this.#loaded = await this.#reload()
    }
    this.#lookedAt = now
    const renew = rejected && now - this.#renewedAt >= this.#timing.renew
    if (renew) this.#renewedAt = now
    await this.#runExec(this.#loaded, renew)
    const next = this.#compose(this.#loaded)
    // The same object for the same access: its holders see cheaply that nothing changed.
    if (!this.#snapshot || !sameAccess(this.#snapshot, next)) this.#snapshot = next
    return this.#snapshot
  }

  async #changed(loaded: LoadedCredentials): Promise<boolean> {
    const files = [...loaded.fingerprints]
    // Side by side: each answer by itself would wake the loop up.
    const now = await Promise.all(files.map(([path]) => fingerprint(path)))
    return files.some(([, before], index) => now[index] !== before)
  }

  async #reload(): Promise<LoadedCredentials> {
    try {
      return await this.#load()
    } catch (error) {
      if (!this.#loaded || this.options.read) throw error
      this.#files.report(this.origin, (error as Error).message)
      return this.#loaded
    }
  }

  async #load(): Promise<LoadedCredentials> {
    const source = this.#source ?? (await this.find())
    const { paths } = source
    const now = await Promise.all(paths.map(fingerprint))
    const fingerprints = new Map(paths.map((path, index) => [path, now[index] ?? '']))
    const { settings, warning } = shownTo(await source.read(this.#files))
    this.#warn(source, warning)
    const { cluster, user } = settings
    const text = async (material: Material | undefined, check: (text: string) => string | undefined) => {
      if (material?.type !== 'file') return material?.text
      const { path, field } = material
      await this.options.obey?.({ what: field.place, path })
      fingerprints.set(path, await fingerprint(path))
      return this.#files.read(path, check, (problem) => field.error(problem))
    }
    // Side by side, since each wait for the disk wakes threads up; the first of several problems, in this order, is named.
    const reads = [
      text(cluster.authority, authorityProblem),
      text(user.certificate?.chain, certificateProblem),
      text(user.certificate?.key, privateKeyProblem),
      text(user.token, (content) => tokenProblem(content.trim())),
    ] as const
    await Promise.allSettled(reads)
    const [authority, chain, key, token] = await Promise.all(reads)
    const certificate = chain === undefined || key === undefined ? undefined : { chain, key }
    const loaded: LoadedCredentials = {
      settings,
      authority,
      certificate: this.#matchingPair(settings, certificate),
      authorization: token === undefined ? user.basic : `Bearer ${token.trim()}`,
      proxy: cluster.proxy ?? proxyFromEnvironment(cluster.server, this.options.environment),
      fingerprints,
    }
    this.#source = source
    this.#readAt = performance.now()
    return loaded
  }

  /** Once, for as long as there is reason to. */
  #warn({ origin }: SettingsSource, warning: string | undefined): void {
    if (warning !== undefined && warning !== this.#warning) {
      this.options.log?.warn({ path: origin }, `${origin}: ${warning}`)
    }
    this.#warning = warning
  }

  /** A rotation replaces certificate and key one after the other: between the two, the old pair stays in force. */
  #matchingPair(settings: ContextSettings, pair: LoadedCredentials['certificate']): LoadedCredentials['certificate'] {
    const key = settings.user.certificate?.key
    if (!pair || !key || keyMatches(pair.chain, pair.key)) return pair
    const error = key.field.error('does not match the client certificate')
    if (!this.#loaded?.certificate || this.options.read) throw error
    this.#files.report(key.field.place, error.message)
    return this.#loaded.certificate
  }

  #execExpired(): boolean {
    // Renewed a little early, so that no request is under way when it expires; a short-lived one, less early.
    return this.#credentialLeft() <= Math.min(30_000, this.#credentialLifetime / 10)
  }

  /**
   * Milliseconds, by the clock or by the time that has passed, whichever is less: a clock that was wrong when the plugin ran may have
   * been set since, and a machine that slept has counted nothing.
   */
  #credentialLeft(): number {
    const expires = this.#credential?.expires
    if (expires === undefined) return Infinity
    const passed = performance.now() - this.#credentialObtained
    return Math.min(expires - Date.now(), this.#credentialLifetime - passed)
  }

  async #runExec({ settings, authority }: LoadedCredentials, renew: boolean): Promise<void> {
    const { exec } = settings.user
    if (!exec) {
      this.#credential = undefined
      return
    }
    // Settings are another object only where the kubeconfig differs.
    if (exec !== this.#credentialOf) this.#credential = undefined
    if (this.#credential && !renew && !this.#execExpired()) return
    try {
      const { environment } = this.options
      const { cluster } = settings
      const program = await programPath(exec.command, pluginEnvironment(exec, environment).PATH)
      if (program !== undefined) await this.options.obey?.({ what: 'credential plugin', path: program })
      this.#credential = await runExecPlugin(exec, {
        environment,
        cluster,
        authority,
        timeout: this.#timing.exec,
      })
      this.#credentialOf = exec
      this.#credentialObtained = performance.now()
      this.#credentialLifetime = (this.#credential.expires ?? Infinity) - Date.now()
    } catch (error) {
      // The one in hand was to be renewed early, and is good for a while yet.
      const usable = !renew && this.#credential !== undefined && this.#credentialLeft() > 0
      if (!usable) throw error
      this.#files.report(exec.field.place, (error as Error).message)
    }
  }

  #compose({ settings, authority, certificate, authorization, proxy }: LoadedCredentials): AccessSnapshot {
    const { cluster, user } = settings
    const token = this.#credential?.token
    const header = token === undefined ? authorization : `Bearer ${token}`
    return accessSnapshot({
      server: cluster.server,
      serverName: cluster.serverName,
      insecure: cluster.insecure,
      authority,
      certificate: this.#credential?.certificate ?? certificate,
      proxy,
      headers: { ...user.impersonation, ...(header !== undefined && { authorization: header }) },
    })
  }
}
