import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Certificate authorities and certificates for tests, made by openssl in a directory of their own. */
export interface Pair {
  readonly certificate: string
  readonly key: string
}

export function temporaryDirectory(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** `extensions`: in place of openssl's own, `basicConstraints=critical,CA:true` and the like. `serial`: may be negative. */
export function makeAuthority(name: string, extensions?: readonly string[], serial?: number): Pair {
  return inDirectory((directory) => {
    const own = ['[req]', 'distinguished_name=d', '[d]', '[v3]', ...(extensions ?? [])].join('\n')
    writeFileSync(join(directory, 'config'), own)
    const more = extensions === undefined ? [] : ['-config', 'config', '-extensions', 'v3']
    const numbered = serial === undefined ? [] : ['-set_serial', String(serial)]
    openssl(directory, [...request(name), '-x509', '-days', '30', '-out', 'crt.pem', ...more, ...numbered])
    return read(directory)
  })
}

export interface Subject {
  readonly name: string
  readonly alternativeNames?: string
  readonly days?: number
  /** Further lines of openssl's extensions: `extendedKeyUsage=clientAuth`. */
  readonly extensions?: readonly string[]
}

export function issue(authority: Pair, { name, alternativeNames, days = 7, extensions = [] }: Subject): Pair {
  return inDirectory((directory) => {
    writeFileSync(join(directory, 'ca.pem'), authority.certificate)
    writeFileSync(join(directory, 'ca.key'), authority.key)
    const names = alternativeNames ? [`subjectAltName=${alternativeNames}`] : []
    writeFileSync(join(directory, 'ext'), [...names, ...extensions].join('\n'))
    openssl(directory, [...request(name), '-out', 'csr.pem'])
    const sign = ['x509', '-req', '-in', 'csr.pem', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial']
    openssl(directory, [...sign, '-days', String(days), '-extfile', 'ext', '-out', 'crt.pem'])
    return read(directory)
  })
}

function request(name: string): string[] {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', 'key.pem']
  return ['req', ...key, '-subj', `/CN=${name}`]
}

function read(directory: string): Pair {
  const text = (name: string): string => readFileSync(join(directory, name), 'utf8')
  return { certificate: text('crt.pem'), key: text('key.pem') }
}

function inDirectory<T>(work: (directory: string) => T): T {
  const directory = temporaryDirectory()
  try {
    return work(directory.path)
  } finally {
    directory.remove()
  }
}

function openssl(directory: string, args: string[]): void {
  execFileSync('openssl', args, { cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] })
}
