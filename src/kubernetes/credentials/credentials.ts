import { EventEmitter } from 'node:events'
import { silent, type Log } from '../../log.js'
import { programPath } from '../../program-path.js'
import { authorityProblem, systemAuthorities } from '../../x509/authorities.js'
import { certificateProblem, keyMatches, privateKeyProblem } from '../../x509/certificates.js'
import { proxyFromEnvironment } from '../connection/proxy.js'
import { sameAccess, accessSnapshot, type AccessSnapshot } from './access.js'
import { CredentialFiles, type ReadFile } from './credential-files.js'
import { pluginEnvironment, runExecPlugin, type ExecCredential } from './exec-plugin.js'
import { tokenProblem, type ContextSettings, type ExecPluginSettings } from './kubeconfig.js'
import type { Material } from './kubeconfig-file.js'
import { shownTo } from './plain-http.js'
import { findSettings, type SettingsOptions, type SettingsSource } from './settings-source.js'

/** Milliseconds. */
export interface CredentialsTiming {
  /** The least time between two looks (stat) at the files for a request. */
  readonly look: number
  /** From the change of a file to the look at it: a certificate and its key are written one after the other. */
  readonly settle: number
  /** Between two looks at files that could not be used, or on a file system that tells of no change. */
  readonly poll: number
  /** Between two renewals of the credentials of a client at rest. */
  readonly check: number
  /** The time after which each file is read again, even if it seems unchanged (a network file system may not say so). */
  readonly reread: number
  /** A credential plugin is killed after this. */
  readonly exec: number
  /** After a 401, a credential plugin is run again no more often than this. */
  readonly renew: number
}

const usualTiming: CredentialsTiming = {
  look: 1_000,
  settle: 250,
  poll: 2_000,
  check: 30_000,
  reread: 60_000,
  exec: 60_000,
  renew: 10_000,
}

export interface CredentialsOptions extends SettingsOptions {
  readonly log?: Log
  readonly timing?: Partial<CredentialsTiming>
  /** Reads the files. What does not fit now is then an error, even after a good one. */
  readonly read?: ReadFile
  /** An authority of these may have signed the server's certificate, too, as far as they can be had. These may be among them. */
  readonly trusting?: readonly Pick<Credentials, 'authority'>[]
}

interface LoadedCredentials {
  readonly settings: ContextSettings
  readonly authority: string | undefined
  readonly certificate: { readonly chain: string; readonly key: string } | undefined
  readonly authorization: string | undefined
  readonly proxy: URL | undefined
}

/** The way to an API server, and our identity there: found at the first need, and followed as files and plugins renew it. */
export class Credentials {
  /** Tells each time that another access than before is in force. */
  readonly changes = new EventEmitter<{ changed: [AccessSnapshot] }>().setMaxListeners(0)
  readonly #files: CredentialFiles
  readonly #timing: CredentialsTiming
  #source: SettingsSource | undefined
  #loaded: LoadedCredentials | undefined
  #snapshot: AccessSnapshot | undefined
  #plugin: { readonly settings: ExecPluginSettings; readonly credential: ExecCredential } | undefined
  // By performance.now(): a clock that is set back must not stop anything from being followed.
  #lookedAt = -Infinity
  #readAt = -Infinity
  #renewedAt = -Infinity
  #pending: Promise<AccessSnapshot> | undefined
  #warning: string | undefined
  #checks: NodeJS.Timeout | undefined
  #nextLook: NodeJS.Timeout | undefined
  /** Looks asked for. */
  #asked = 0

  constructor(private readonly options: CredentialsOptions) {
    this.#files = new CredentialFiles(options.log ?? silent, options.read)
    this.#timing = { ...usualTiming, ...options.timing }
  }

  /** Reads the files, so that a mistake shows at once. @throws KubeconfigError: which file, which field, what to do */
  async load(): Promise<this> {
    await this.#load()
    return this
  }

  /** For people: `kubeconfig /etc/x, context y`. */
  get origin(): string {
    return this.#source?.origin ?? 'not loaded'
  }

  /** The namespace that the context or the service account names. */
  get namespace(): string | undefined {
    return this.#loaded?.settings.namespace
  }

  /**
   * The access in force now; looks for changed files on the way. Rejects only where there are no credentials at all, such as when there is
   * no kubeconfig yet, or a credential plugin fails: the next call tries again.
   */
  async current(): Promise<AccessSnapshot> {
    const isFresh = !this.#plugin?.credential.isDue && performance.now() - this.#lookedAt < this.#timing.look
    if (isFresh && this.#snapshot) return this.#snapshot
    return this.#shared(false)
  }

  /** The server answered 401 to this snapshot: reads every file again, and runs a credential plugin again. */
  async renew(rejected: AccessSnapshot): Promise<AccessSnapshot> {
    // Many requests are refused at once when a token expires; one renewal serves them all.
    await this.#pending?.catch(() => undefined)
    if (this.#snapshot && !sameAccess(this.#snapshot, rejected)) return this.#snapshot
    return this.#shared(true)
  }

  /** The authorities by which the server is verified; undefined where it is not. */
  async authority(): Promise<string | undefined> {
    return verifyingAuthority(await this.#read(false))
  }

  /** Until `close`, it looks for other credentials by itself once there are any: when a file changes, and from time to time. */
  follow(): void {
    this.#checks = setInterval(() => {
      if (this.#snapshot) this.current().catch(() => undefined)
    }, this.#timing.check).unref()
    if (this.#snapshot) this.#lookSoon()
  }

  close(): void {
    clearInterval(this.#checks)
    clearTimeout(this.#nextLook)
    this.#checks = undefined
    this.#files.close()
    this.changes.removeAllListeners()
  }

  #shared(rejected: boolean): Promise<AccessSnapshot> {
    this.#pending ??= this.#refresh(rejected).finally(() => (this.#pending = undefined))
    return this.#pending
  }

  async #refresh(rejected: boolean): Promise<AccessSnapshot> {
    const loaded = await this.#read(rejected)
    const now = performance.now()
    const renew = rejected && now - this.#renewedAt >= this.#timing.renew
    if (renew) this.#renewedAt = now
    await this.#runPlugin(loaded, renew)
    const next = await this.#compose(loaded)
    // The same object for the same access: its holders see cheaply that nothing changed.
    if (this.#snapshot && sameAccess(this.#snapshot, next)) return this.#snapshot
    this.#snapshot = next
    this.changes.emit('changed', next)
    this.#lookSoon()
    return next
  }

  /** What the files say, or said when they were good. */
  async #read(again: boolean): Promise<LoadedCredentials> {
    const now = performance.now()
    const due = again || now - this.#readAt >= this.#timing.reread
    let loaded = this.#loaded
    if (!loaded || due || (await this.#files.changed())) {
      try {
        loaded = await this.#load()
      } catch (error) {
        if (!loaded || this.options.read) throw error
        this.#files.report(this.origin, (error as Error).message)
      }
    }
    this.#lookedAt = now
    return loaded
  }

  async #load(): Promise<LoadedCredentials> {
    this.#readAt = -Infinity
    const source = this.#source ?? (await findSettings(this.options))
    await this.#files.begin(source.paths)
    const { settings, warning } = shownTo(await source.read(this.#files))
    this.#warn(source, warning)
    const { cluster, user } = settings
    const text = async (material: Material | undefined, check: (text: string) => string | undefined) => {
      if (material?.type !== 'file') return material?.text
      const { path, field } = material
      await this.options.obey?.({ what: field.place, path })
      await this.#files.mark(path)
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
    this.#loaded = {
      settings,
      authority,
      certificate: this.#matchingPair(settings, certificate),
      authorization: token === undefined ? user.basic : `Bearer ${token.trim()}`,
      proxy: cluster.proxy ?? proxyFromEnvironment(cluster.server, this.options.environment),
    }
    this.#source = source
    this.#readAt = performance.now()
    return this.#loaded
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

  async #runPlugin({ settings: { cluster, user }, authority }: LoadedCredentials, renew: boolean): Promise<void> {
    const { exec: settings } = user
    // Settings are another object only where the kubeconfig differs.
    if (settings !== this.#plugin?.settings) this.#plugin = undefined
    if (!settings) return
    const before = this.#plugin?.credential
    if (before && !renew && !before.isDue) return
    try {
      const { environment } = this.options
      const program = await programPath(settings.command, pluginEnvironment(settings, environment).PATH)
      if (program !== undefined) await this.options.obey?.({ what: 'credential plugin', path: program })
      const timeout = this.#timing.exec
      this.#plugin = {
        settings,
        credential: await runExecPlugin(settings, { environment, cluster, authority, timeout }),
      }
    } catch (error) {
      // The one in hand was to be renewed early, and is good for a while yet.
      const isUsable = !renew && before !== undefined && before.left > 0
      if (!isUsable) throw error
      this.#files.report(settings.field.place, (error as Error).message)
    }
  }

  async #compose(loaded: LoadedCredentials): Promise<AccessSnapshot> {
    const { cluster, user } = loaded.settings
    const { token, certificate: issued } = this.#plugin?.credential ?? {}
    const header = token === undefined ? loaded.authorization : `Bearer ${token}`
    return accessSnapshot({
      server: cluster.server,
      serverName: cluster.serverName,
      insecure: cluster.insecure,
      authority: await this.#joinedAuthority(loaded),
      certificate: issued ?? loaded.certificate,
      proxy: loaded.proxy,
      headers: { ...user.impersonation, ...(header !== undefined && { authorization: header }) },
    })
  }

  async #joinedAuthority(loaded: LoadedCredentials): Promise<string | undefined> {
    const own = verifyingAuthority(loaded)
    const { trusting } = this.options
    if (!trusting || own === undefined) return loaded.authority
    const others = trusting.filter((other) => other !== this).map((other) => other.authority().catch(() => undefined))
    const found = [own, ...(await Promise.all(others))]
    return [...new Set(found.filter((authority) => authority !== undefined))].join('\n')
  }

  #lookSoon(delay = this.#timing.settle): void {
    this.#asked += 1
    if (this.#checks) this.#nextLook ??= setTimeout(() => void this.#look(), delay).unref()
  }

  /** The client soon follows a kubeconfig that leads elsewhere, and runs no plugin where no file has changed. */
  async #look(): Promise<void> {
    const asked = this.#asked
    // First: the look sees what changes meanwhile, or an event tells.
    const hasEvents = await this.#files.watch(() => this.#lookSoon())
    const isOutdated = this.#readAt === -Infinity || (await this.#files.changed())
    if (isOutdated) await this.#shared(false).catch(() => undefined)
    this.#nextLook = undefined
    if (this.#asked !== asked) this.#lookSoon()
    else if (!hasEvents || isOutdated) this.#lookSoon(this.#timing.poll)
  }
}

function verifyingAuthority({ settings, authority }: LoadedCredentials): string | undefined {
  const { server, insecure } = settings.cluster
  return server.protocol === 'https:' && !insecure ? (authority ?? systemAuthorities()) : undefined
}
