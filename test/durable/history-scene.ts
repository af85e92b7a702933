/** A target with a history, on a disk whose clock the test moves. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { FileSystem } from '../../src/durable/file-system.js'
import { readHistory } from '../../src/durable/look/read-history.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { publish } from '../../src/durable/publish/publish.js'
import { directoryPublication } from '../../src/durable/publish/replace.js'
import type { HistoryLimits, PublicationOptions, ReplaceResult } from '../../src/durable/types.js'
import { isKind } from '../crash/judge/names.js'
import { scratchWith } from './scratch.js'

/** undefined where there is no such file. */
export function textAt(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** Its clock stands still until the test moves it, with the time, or sets it. */
class Here extends NodeFileSystem {
  clock = Date.UTC(2026, 0, 1)
  ahead = 0
  /** Another start of the kernel. */
  boot: string | undefined
  override now(): number {
    return this.clock
  }
  override uptime(): number {
    return this.clock - this.ahead
  }
  override bootId(): Promise<string> {
    return this.boot === undefined ? super.bootId() : Promise.resolve(this.boot)
  }
  set(by: number): void {
    this.clock += by
    this.ahead += by
  }
}

export const forever = (keep: number): HistoryLimits => ({ keep, maxAge: null })
export const secret = (name: string) => ({
  kind: 'Secret',
  namespace: 'demo',
  name,
  uid: `uid of ${name}`,
  resourceVersion: '1',
})
export const objectOf = (name: string) => ({ ...secret(name), paths: ['tls.crt'] })
/** The limits, and no content that this Secret gave. */
export const without = (name: string, limits: HistoryLimits): HistoryLimits => ({
  ...limits,
  mayStay: (object) => object.name !== name,
})

export function scene(t: Test, form: PublicationOptions['publish'] = 'exchange') {
  const [root, target] = scratchWith(t, 'certs')
  const fs = new Here()
  const replaceBy = async (by: FileSystem, text: string, options: PublicationOptions = {}): Promise<ReplaceResult> => {
    const files = { 'tls.crt': text, 'sub/tls.key': { content: text, mode: 0o440 } }
    const request = { target, files, mode: 0o750, history: forever(2), publish: form, ...options }
    const [outcome] = await publish([directoryPublication(by, request)])
    if (outcome === undefined || 'error' in outcome) throw outcome?.error ?? new Error('no outcome')
    return outcome
  }
  const replace = (text: string, options?: PublicationOptions) => replaceBy(fs, text, options)
  const generations = (): string[] =>
    readdirSync(root)
      .filter(isKind('generation'))
      .map((name) => join(root, name))
      .sort()
  const past = async () => ((await readHistory(fs, target)) ?? []).map(({ sequence, state }) => `${sequence} ${state}`)
  return { root, target, fs, replace, replaceBy, generations, past }
}
