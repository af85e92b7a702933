/**
 * A disk as a build has left it: entries with modes, owners, links, extended attributes and content, and in its records a sign in the place of
 * each number that no copy can keep, of an inode, of the time of its birth, and of the boot. `lay` puts the disk's own numbers there.
 */
import { hash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib'
import { project } from '../../project.js'
import { setExtendedAttribute } from '../histories/libc.js'

export interface GoldenTarget {
  readonly path: string
  readonly form: 'exchange' | 'symlink' | 'file'
  readonly history?: number
  readonly movedFrom?: string
}

export interface GoldenEntry {
  readonly path: string
  readonly type: 'directory' | 'file' | 'symlink'
  readonly mode: number
  readonly uid: number
  readonly gid: number
  /** Equal for two names of one inode. */
  readonly inode: number
  /** One character for each byte; a link's text. */
  readonly data?: string
  /** By name, one character for each byte. */
  readonly attributes?: Readonly<Record<string, string>>
}

export interface GoldenDisk {
  /** The engine, its scene, and how that ended. */
  readonly name: string
  /** The clock on the wall at its end, in milliseconds since the epoch. */
  readonly now: number
  /** What is published there; a node with a static pod has none of these. */
  readonly targets: readonly GoldenTarget[]
  /** Parents first. */
  readonly entries: readonly GoldenEntry[]
}

/** What a command has answered. */
export interface Answer {
  readonly asked: string
  readonly code: number | null
  readonly said: string
  /** What the command has changed on the disk: `- ENTRY`, `+ ENTRY`. */
  readonly changed: readonly string[]
}

export interface Golden extends GoldenDisk {
  readonly answers: readonly Answer[]
}

/** Of this machine, until it starts again. */
export const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()

/** Not compiled. */
export const file = join(project, 'test/crash/golden/disks.json.br')

export function readGolden(path = file): Golden[] {
  return JSON.parse(brotliDecompressSync(readFileSync(path)).toString()) as Golden[]
}

/** Returns the bytes that it takes. */
export function writeGolden(path: string, disks: readonly Golden[]): number {
  const text = Buffer.from(JSON.stringify(disks))
  const params = { [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_SIZE_HINT]: text.length }
  const bytes = brotliCompressSync(text, { params })
  writeFileSync(path, bytes)
  return bytes.length
}

/** The inode that a number in a record means, by its birth where the record says it; undefined: none that is there. */
export type InodeOf = (number: string, birth: string | undefined) => number | undefined

const ofInode = /"(inode|staged|old)":"(\d+)"(?:,"birth":"(\d+)")?/g
const signOfInode = /"(inode|staged|old)":"@(\d+)"(,"birth":"@")?/g
const whole = (checksum: string | undefined, json: string | undefined): boolean =>
  json !== undefined && checksum === hash('sha256', json)
const boot = '"boot":"@"'

/** The text with signs in its whole lines: such a line begins with `@`. What is torn is no record's. */
export function signed(text: string, bootId: string, inodeOf: InodeOf): string {
  return text.replace(/^([0-9a-f]{64}) (\{.*\})$/gm, (line, checksum: string, json: string) => {
    if (!whole(checksum, json)) return line
    const signs = json.replaceAll(`"boot":"${bootId}"`, boot)
    return `@ ${signs.replace(ofInode, (known, field: string, number: string, birth?: string) => {
      const inode = inodeOf(number, birth)
      // An inode that is gone has a number that no other one gets.
      if (inode === undefined) return known.replace(/\d+/, (gone) => `${10n ** 12n + BigInt(gone)}`)
      return `"${field}":"@${inode}"${birth === undefined ? '' : ',"birth":"@"'}`
    })}`
  })
}

interface Numbers {
  readonly inode: bigint
  readonly birth: bigint
}

function unsigned(text: string, bootId: string, numbers: ReadonlyMap<number, Numbers>): string {
  return text.replace(/^@ (\{.*\})$/gm, (_, signs: string) => {
    const json = signs
      .replaceAll(boot, `"boot":"${bootId}"`)
      .replace(signOfInode, (sign, field: string, number: string, birth?: string) => {
        const found = numbers.get(Number(number))
        if (found === undefined) throw new Error(`no inode stands for ${sign}`)
        return `"${field}":"${found.inode}"${birth === undefined ? '' : `,"birth":"${found.birth}"`}`
      })
    return `${hash('sha256', json)} ${json}`
  })
}

/** Lays the disk's entries out below `root`. As root. */
export function lay({ entries }: GoldenDisk, root: string, bootId: string): void {
  const numbers = new Map<number, Numbers>()
  const first = new Map<number, string>()
  for (const { path, type, inode, data = '' } of entries) {
    const at = join(root, path)
    const other = first.get(inode)
    if (other !== undefined) linkSync(join(root, other), at)
    else if (type === 'directory') mkdirSync(at, { recursive: true })
    else if (type === 'symlink') symlinkSync(Buffer.from(data, 'latin1'), at)
    else writeFileSync(at, data, 'latin1')
    first.set(inode, path)
    const { ino, birthtimeNs } = lstatSync(at, { bigint: true })
    numbers.set(inode, { inode: ino, birth: birthtimeNs })
  }
  // Only now: what a directory's access list says of new entries is not for these.
  for (const { path, type, mode, uid, gid, data, attributes = {} } of entries) {
    const at = join(root, path)
    if (type === 'symlink') {
      lchownSync(at, uid, gid)
      continue
    }
    if (data?.includes('@ {')) writeFileSync(at, unsigned(data, bootId, numbers), 'latin1')
    chownSync(at, uid, gid)
    chmodSync(at, mode)
    for (const [name, value] of Object.entries(attributes)) setExtendedAttribute(at, name, value)
  }
}
