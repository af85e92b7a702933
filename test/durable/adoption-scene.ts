/** A directory of another program's, and who looks at it or takes it over. */
import type { DirectoryPublicationOptions } from '../../src/durable/publish/request.js'
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { examineAdoption, takeOver } from '../../src/durable/adopt/adoption.js'
import type { Adopting, AdoptionCheck } from '../../src/durable/types.js'
import type { FileSystem, Writers } from '../../src/durable/file-system.js'
import { readPublication } from '../../src/durable/look/inspect.js'
import { readHistory } from '../../src/durable/look/read-history.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { publish } from '../../src/durable/publish/publish.js'
import { directoryPublication } from '../../src/durable/publish/replace.js'
import type { ReplaceResult } from '../../src/durable/types.js'
import { contents, kept, scratch } from './scratch.js'

export const adopt: Adopting = { replace: false }
export const none = { keep: 0, maxAge: null }
export const files = { 'tls.crt': 'new', 'tls.key': 'key' }
export const before = { 'tls.crt': 'old', 'tls.key': 'key' }

export function scene(t: Test, there: Record<string, string> = before, fs: NodeFileSystem = new Alone()) {
  const root = join(scratch(t), 'secrets')
  const target = join(root, 'certs')
  mkdirSync(target, { recursive: true })
  for (const [path, text] of Object.entries(there)) writeFileSync(join(target, path), text, { mode: 0o640 })
  const requestFor = (options: Partial<DirectoryPublicationOptions>, asked: Record<string, string> = files) => ({
    target,
    files: asked,
    history: none,
    adopt: takeOver(adopt),
    hooks: ['reload'],
    ...options,
  })
  const publishBy = async (
    by: FileSystem,
    options: Partial<DirectoryPublicationOptions> = {},
    asked?: Record<string, string>,
  ) => {
    const [outcome] = await publish([directoryPublication(by, requestFor(options, asked))])
    if (outcome === undefined || 'error' in outcome) throw outcome?.error ?? new Error('no outcome')
    return outcome
  }
  const take = (
    options?: Partial<DirectoryPublicationOptions>,
    asked?: Record<string, string>,
  ): Promise<ReplaceResult> => publishBy(fs, options, asked)
  /** What the seven say, but for those that have passed; and that nothing was changed by looking. */
  const examine = async (by: FileSystem = fs, how = adopt) => {
    const seen = [contents(root), readdirSync(root), statSync(target, { throwIfNoEntry: false })?.ino]
    const { own, checks } = await examineAdoption(by, requestFor({}), how)
    t.strictSame([contents(root), readdirSync(root), statSync(target, { throwIfNoEntry: false })?.ino], seen)
    if (!own)
      t.strictSame(
        checks.map(({ check }) => check),
        order,
      )
    return { own, checks, open: checks.filter(({ verdict }) => verdict !== 'passed') }
  }
  /** The first check that has not passed, by looking, and what a publication answers; nothing is changed. */
  const refuses = async (
    check: AdoptionCheck,
    verdict: 'pending' | 'refused',
    message: RegExp,
    by: FileSystem = fs,
    how = adopt,
    left: readonly string[] = [],
  ) => {
    const seen = [contents(target), statSync(target).ino]
    const { open } = await examine(by, how)
    t.match(open[0], { check, verdict, terminal: verdict === 'refused', message, advice: /\w/ })
    const reason = verdict === 'pending' ? 'AdoptionPending' : 'AdoptionRefused'
    await t.rejects(publishBy(by, { adopt: takeOver(how) }), {
      reason,
      published: false,
      message: new RegExp(`: ${check}: .*nothing was changed`),
    })
    t.strictSame([contents(target), statSync(target).ino], seen)
    t.strictSame(kept(root), ['lock', ...left])
  }
  const past = async () =>
    ((await readHistory(fs, target)) ?? []).map(({ sequence, why, state }) => `${sequence} ${why} ${state}`)
  const pendingHooks = async () => (await readPublication(fs, target))?.pendingHooks
  return { root, target, fs, take, publishBy, examine, refuses, past, pendingHooks, requestFor }
}

/** Scans no process: writers-in-use has another test. */
export class Alone extends NodeFileSystem {
  override writersIn(): Promise<Writers> {
    return Promise.resolve({ writer: undefined, unseen: undefined })
  }
}

const order = ['exists', 'noOtherWriter', 'realDirectory', 'fileSystem', 'safeOwner', 'space', 'content']
