/* procfs as a test writes it: processes, by the texts that proc(5) describes. All other paths, also those of /proc, stay real. */
import fs from 'node:fs'
import type { Test } from 'tap'
import { failure } from '../intercepted.js'
import { replaceCall } from '../system-calls.js'

/** A text, or the errno of who asks for it. */
type Told = string | Error

/** A failure to read this. */
export const fails = (code: string): Error => failure(code, 'read')

export interface ProcessTexts {
  readonly root?: Told
  readonly cwd?: Told
  /** A kernel thread has none: ENOENT. */
  readonly exe?: Told
  /** Which mount namespace it is in. */
  readonly namespace?: string
  /** Lines of mountinfo. */
  readonly mounts?: readonly string[] | Error
  /** What each descriptor leads to, and its fdinfo. */
  readonly fds?: Readonly<Record<string, readonly [link: Told, information: Told]>> | Error
  readonly maps?: Told | Promise<string>
}

export interface World {
  /** By PID; `self` is who asks. */
  readonly processes: Readonly<Record<string, ProcessTexts>>
  /** PIDs at each listing of /proc; then those of the last one. */
  readonly listings?: readonly (readonly number[])[]
  readonly pidNamespace?: string
}

/** All reads of this world, in order. */
export function proc(t: Test, world: World): string[] {
  const read: string[] = []
  const listings = [...(world.listings ?? [Object.keys(world.processes).filter((name) => name !== 'self')])]
  const told = <T>(value: T | Error | undefined): T => {
    if (value === undefined) throw fails('ENOENT')
    if (value instanceof Error) throw value
    return value
  }
  const answers = (path: unknown): readonly string[] | Promise<string> | string | undefined => {
    if (path === '/proc') {
      read.push(path)
      const pids = listings.length > 1 ? listings.shift() : listings[0]
      return ['self', 'meminfo', ...(pids ?? []).map(String)]
    }
    if (path === '/proc/self/ns/pid') return world.pidNamespace ?? 'pid:[4026531836]'
    const [, pid = '', file = ''] = /^\/proc\/(\d+)\/(.+)$/.exec(String(path)) ?? []
    if (pid === '') return undefined
    read.push(`${pid === String(process.pid) ? 'self' : pid} ${file}`)
    const one = told(world.processes[pid === String(process.pid) ? 'self' : pid])
    const [, of, name = ''] = /^(fd|fdinfo)\/(.+)$/.exec(file) ?? []
    const fds = one.fds ?? {}
    const texts: Record<string, () => readonly string[] | string | Promise<string>> = {
      root: () => told(one.root ?? '/'),
      cwd: () => told(one.cwd ?? '/'),
      exe: () => told(one.exe ?? '/usr/bin/program'),
      'ns/mnt': () => `mnt:[${one.namespace ?? '1'}]`,
      mountinfo: () =>
        told(one.mounts ?? [])
          .map((line) => `${line}\n`)
          .join(''),
      fd: () => Object.keys(told(fds)),
      maps: () => told(one.maps ?? ''),
      comm: () => `program-${pid}\n`,
    }
    if (of !== undefined) return told(told(told(fds)[name])[of === 'fd' ? 0 : 1])
    return told(texts[file])()
  }
  for (const name of ['readdirSync', 'readlinkSync', 'readFileSync'])
    replaceCall(
      t,
      name,
      (real) =>
        (path, ...rest) =>
          answers(path) ?? real(path, ...rest),
    )
  replaceCall(t, 'opendirSync', (real) => (path, ...rest) => {
    const names = answers(path)
    if (!Array.isArray(names)) return real(path, ...rest)
    const left = (names as string[]).values()
    const readSync = (): { name: string } | null => {
      const next = left.next()
      return next.done === true ? null : { name: next.value }
    }
    return { readSync, closeSync: () => undefined }
  })
  const { readFile } = fs.promises
  Object.assign(fs.promises, {
    readFile: async (path: string, ...rest: []) => answers(path) ?? readFile(path, ...rest),
  })
  t.teardown(() => Object.assign(fs.promises, { readFile }))
  return read
}

/** Every wait of so many milliseconds ends at once. */
export function endAtOnce(t: Test, milliseconds: number): void {
  const real = globalThis.setTimeout
  globalThis.setTimeout = ((act: () => void, delay: number, ...rest: []) =>
    real(act, delay === milliseconds ? 0 : delay, ...rest)) as typeof setTimeout
  t.teardown(() => (globalThis.setTimeout = real))
}

/** fdinfo of a descriptor, as Linux has had it since 5.14. */
export function information(mount: number, inode?: number | bigint, flags = '0100000'): string {
  return `pos:\t0\nflags:\t${flags}\nmnt_id:\t${mount}\n${inode === undefined ? '' : `ino:\t${inode}\n`}`
}
