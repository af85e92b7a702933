/** Certificates and keys made by the openssl command: what nodes really hold. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const directory = mkdtempSync(join(tmpdir(), 'holdfast-certificates-'))
process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
let count = 0

/** Runs openssl with input and output in files: `IN` and `OUT` stand for their names. */
export function openssl(command: string, input?: string | Uint8Array): Buffer {
  const [source, target] = [join(directory, `in-${++count}`), join(directory, `out-${count}`)]
  if (input !== undefined) writeFileSync(source, input)
  const words = command.split(' ').map((word) => (word === 'IN' ? source : word === 'OUT' ? target : word))
  execFileSync('openssl', words, { stdio: ['ignore', 'ignore', 'pipe'] })
  return readFileSync(target)
}

export function makeKey(algorithm = 'EC -pkeyopt ec_paramgen_curve:P-256'): string {
  return openssl(`genpkey -algorithm ${algorithm} -out OUT`).toString()
}

/** Self-signed, for the key. `days` may be negative. */
export function makeCertificate(key: string, { days = 30, name = 'holdfast.test' } = {}): string {
  return openssl(`req -x509 -new -key IN -subj /CN=${name} -days ${days} -out OUT`, key).toString()
}

/** Self-signed, valid for so many days from a time that need not be now. */
export function makeCertificateFrom(key: string, from: Date, days: number): string {
  const time = (date: Date) => date.toISOString().replaceAll(/[-:T]|\.\d+/g, '')
  const [index, config] = [join(directory, `index-${++count}`), join(directory, `config-${count}`)]
  writeFileSync(index, '')
  const own = `database=${index}\nrand_serial=yes\nnew_certs_dir=${directory}\ndefault_md=sha256\npolicy=p`
  writeFileSync(config, `[ca]\ndefault_ca=c\n[c]\n${own}\n[p]\ncommonName=supplied\n`)
  const keyFile = join(directory, `key-${count}`)
  writeFileSync(keyFile, key)
  const asked = openssl('req -new -key IN -subj /CN=holdfast.test -out OUT', key)
  const dates = `-startdate ${time(from)} -enddate ${time(new Date(from.getTime() + days * 86_400_000))}`
  return openssl(
    `ca -batch -notext -selfsign -config ${config} -keyfile ${keyFile} ${dates} -in IN -out OUT`,
    asked,
  ).toString()
}

export const toDer = (certificate: string): Buffer => openssl('x509 -in IN -outform DER -out OUT', certificate)

/** The lines of a PEM text, changed by a function and put together again. */
export function edited(pem: string, change: (lines: string[]) => string[]): string {
  return `${change(pem.trimEnd().split('\n')).join('\n')}\n`
}
