/** A certificate authority in a directory: certificates for the API server and for its clients, made by openssl. */
import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Paths of PEM files. */
export interface KeyPair {
  readonly certificate: string
  readonly key: string
}

export class Authority {
  private constructor(private readonly directory: string) {}

  /** Makes the authority's own key and certificate. The directory is created. */
  static async create(directory: string): Promise<Authority> {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const authority = new Authority(directory)
    await authority.request('ca', '/CN=end-to-end', ['-addext', 'keyUsage=critical,keyCertSign'])
    return authority
  }

  get certificate(): string {
    return join(this.directory, 'ca.crt')
  }

  /** A certificate for a server on 127.0.0.1 and localhost, and on these further IP addresses and names. */
  server(name: string, addresses: readonly string[] = []): Promise<KeyPair> {
    const all = ['localhost', '127.0.0.1', ...addresses]
    const names = all.map((address) => `${isIP(address) ? 'IP' : 'DNS'}:${address}`)
    return this.issue(name, `/CN=${name}`, 'serverAuth', [`subjectAltName=${names.join()}`])
  }

  /** A certificate that Kubernetes takes for this user, member of this group. */
  client(user: string, group: string): Promise<KeyPair> {
    return this.issue(user, `/O=${group}/CN=${user}`, 'clientAuth')
  }

  private issue(name: string, subject: string, usage: string, extensions: readonly string[] = []): Promise<KeyPair> {
    const all = ['basicConstraints=critical,CA:FALSE', `extendedKeyUsage=${usage}`, ...extensions]
    return this.request(name, subject, [
      ...['-CA', this.certificate, '-CAkey', join(this.directory, 'ca.key')],
      ...all.flatMap((extension) => ['-addext', extension]),
    ])
  }

  private async request(name: string, subject: string, args: readonly string[]): Promise<KeyPair> {
    const pair = {
      certificate: join(this.directory, `${name}.crt`),
      key: join(this.directory, `${name}.key`),
    }
    await promisify(execFile)('openssl', [
      ...['req', '-x509', '-days', '2', '-subj', subject, '-keyout', pair.key, '-out', pair.certificate],
      ...['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', ...args],
    ])
    return pair
  }
}
