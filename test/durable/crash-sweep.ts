import { mkdirSync, readdirSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { directoryPublication, filePublication } from '../../src/durable/publish/replace.js'
import type { FileSystem } from '../../src/durable/file-system.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import type { TargetPublication } from '../../src/durable/publish/publication.js'
import { publish } from '../../src/durable/publish/publish.js'
import { replay, seed } from '../seed.js'
import { failure, intercepted, Killed } from './intercepted.js'
import { contents, kept, scratch } from './scratch.js'
import { removeTree } from '../remove-tree.js'

/*
 * Every call of the FileSystem interface, on the real file system: the process dies before it, or it fails. (Which bytes a power cut
 * leaves is another suite's matter.) The target must be all old or all new, the answer true, and the next run must
 * complete and leave nothing behind. test/crash/file-system sweeps all: deaths and EIO in deaths.test.ts, what a full disk or a full
 * table of descriptors answers in full.test.ts; test/durable/crashes.test.ts spreads deaths and EIO over the calls, others in each run.
 */

interface Scenario {
  name: string
  /** Makes the content before, if any. */
  before?: (parent: string) => Promise<unknown>
  publication: (fs: FileSystem, parent: string) => TargetPublication[]
  old: Record<string, string>
  new: Record<string, string>
  read: (parent: string) => Record<string, string>
}

const real = new NodeFileSystem()
const files = { a: 'new', 'sub/b': 'new', 'sub/c': 'new' }
const oldFiles = { a: 'old', gone: 'old' }

function readTarget(name: string) {
  return (parent: string): Record<string, string> => {
    try {
      return contents(realpathSync(join(parent, name)))
    } catch {
      return {}
    }
  }
}

/** What a reader sees through the links of a symlink directory. */
function readLinks(parent: string): Record<string, string> {
  return readTarget('certs/..data')(parent)
}

const scenarios: Scenario[] = [
  {
    name: 'first publication, with new ancestors',
    publication: (fs, parent) => [directoryPublication(fs, { target: join(parent, 'deep/er/certs'), files })],
    old: {},
    new: files,
    read: readTarget('deep/er/certs'),
  },
  {
    name: 'replacement',
    before: (parent) => publish([directoryPublication(real, { target: join(parent, 'certs'), files: oldFiles })]),
    publication: (fs, parent) => [directoryPublication(fs, { target: join(parent, 'certs'), files })],
    old: oldFiles,
    new: files,
    read: readTarget('certs'),
  },
  {
    name: 'replacement of a foreign directory',
    before: (parent) => {
      mkdirSync(join(parent, 'certs'))
      for (const [name, content] of Object.entries(oldFiles)) writeFileSync(join(parent, 'certs', name), content)
      return Promise.resolve()
    },
    publication: (fs, parent) => [directoryPublication(fs, { target: join(parent, 'certs'), files })],
    old: oldFiles,
    new: files,
    read: readTarget('certs'),
  },
  {
    name: 'symlink form, first',
    publication: (fs, parent) => [
      directoryPublication(fs, { target: join(parent, 'certs'), files, publish: 'symlink' }),
    ],
    old: {},
    new: files,
    read: readLinks,
  },
  {
    name: 'symlink form, again',
    before: (parent) =>
      publish([directoryPublication(real, { target: join(parent, 'certs'), files: oldFiles, publish: 'symlink' })]),
    publication: (fs, parent) => [
      directoryPublication(fs, { target: join(parent, 'certs'), files, publish: 'symlink' }),
    ],
    old: oldFiles,
    new: files,
    read: readLinks,
  },
  {
    name: 'file',
    before: (parent) => publish([filePublication(real, join(parent, 'pod.yaml'), 'old', {})]),
    publication: (fs, parent) => [filePublication(fs, join(parent, 'pod.yaml'), 'new', {})],
    old: { 'pod.yaml': 'old' },
    new: { 'pod.yaml': 'new' },
    read: (parent) => {
      const found = Object.entries(contents(parent)).filter(([name]) => !name.startsWith('.'))
      return Object.fromEntries(found)
    },
  },
]

/** Which calls are failed with which errno: any can meet a bad disk, the others only what the kernel answers them with. */
const errors = {
  EIO: /./,
  ENOSPC: /^(create|write|set|startWriteOut|sync|rename)/,
  EMFILE: /^(open|createFile|list|entries)/,
} as const

/** Cases at a time: most of a case is waiting for the disk. */
const lanes = 4

/** Runs the cases, so many at a time, each lane in another parent directory. */
async function spread(root: string, cases: readonly ((root: string) => Promise<void>)[]): Promise<void> {
  const left = cases.values()
  const lane = async (_: unknown, index: number): Promise<void> => {
    const own = join(root, `lane-${index}`)
    mkdirSync(own)
    for (const one of left) await one(own)
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}

async function fresh(root: string, scenario: Scenario): Promise<string> {
  const parent = join(root, 'parent')
  removeTree(parent)
  mkdirSync(parent)
  await scenario.before?.(parent)
  return parent
}

async function callsOf(root: string, scenario: Scenario): Promise<string[]> {
  const parent = await fresh(root, scenario)
  const calls: string[] = []
  const { fs, open } = intercepted((call) => calls.push(call))
  const [result] = await publish(scenario.publication(fs, parent))
  if (!result || 'error' in result) throw new Error(`${scenario.name} does not work at all: ${String(result?.error)}`)
  if (open.size > 0) throw new Error(`${scenario.name} leaves descriptors open`)
  return calls
}

function leftBeside(parent: string): string[] {
  const names = readdirSync(parent, { recursive: true, withFileTypes: true })
    .filter(({ name }) => name.startsWith('.holdfast-') || name === '..data_tmp')
    .map((entry) => entry.parentPath)
  return [...new Set(names)].flatMap((directory) => kept(directory))
}

export interface Sweep {
  /** Whether the process also dies before each call. */
  readonly kills: boolean
  readonly codes: readonly (keyof typeof errors)[]
  /** Of each so many calls one, drawn anew in each run, and the first of each name; 1: every call. */
  readonly oneOf: number
}

/** A test for each scenario. */
export async function sweep(t: Test, { kills, codes, oneOf }: Sweep): Promise<void> {
  for (const scenario of scenarios) {
    await t.test(scenario.name, async (t) => {
      const root = scratch(t)
      const calls = await callsOf(root, scenario)
      t.ok(calls.length > 20, `${calls.length} calls`)
      const wrong: string[] = []
      const check = (good: boolean, what: string): void => {
        if (!good) wrong.push(what)
      }
      const same = (a: object, b: object): boolean =>
        JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort())

      const converges = async (parent: string, when: string): Promise<void> => {
        const [again] = await publish(scenario.publication(real, parent))
        check(again !== undefined && !('error' in again), `${when}: the next run fails: ${JSON.stringify(again)}`)
        check(same(scenario.read(parent), scenario.new), `${when}: the next run does not complete`)
        const left = leftBeside(parent).join()
        check(left === 'lock,record', `${when}: the next run leaves ${left}`)
      }

      const killed = (n: number) => async (root: string) => {
        const parent = await fresh(root, scenario)
        let name = ''
        const { fs } = intercepted((call, _args, index) => {
          if (index === n) name = call
          if (index >= n) throw new Killed()
        })
        await publish(scenario.publication(fs, parent)).catch(() => undefined)
        const found = scenario.read(parent)
        const when = `killed before call ${n}, ${name}`
        check(name !== '', `${when}: there is no such call`)
        check(same(found, scenario.old) || same(found, scenario.new), `${when}: ${JSON.stringify(found)}`)
        await converges(parent, when)
      }

      const failed = (n: number, code: string) => async (root: string) => {
        const parent = await fresh(root, scenario)
        let name = ''
        const { fs, open } = intercepted((call, _args, index) => {
          if (index !== n) return
          name = call
          throw failure(code, call)
        })
        const outcomes = await publish(scenario.publication(fs, parent)).catch((error: unknown) => [
          { error: error as { published?: boolean } },
        ])
        const [result] = outcomes
        const when = `${code} from call ${n}, ${name}`
        const found = scenario.read(parent)
        const visible = same(found, scenario.new)
        check(name !== '', `${when}: there is no such call`)
        check(visible || same(found, scenario.old), `${when}: ${JSON.stringify(found)}`)
        if (result && 'error' in result) {
          check(result.error.published === visible, `${when}: says published ${result.error.published}`)
        } else {
          check(visible, `${when}: says success`)
        }
        check(open.size === 0, `${when}: ${open.size} descriptors are open`)
        await converges(parent, when)
      }

      const isDrawn = (index: number) => index % oneOf === seed % oneOf || calls.indexOf(calls[index] ?? '') === index
      const drawn = calls.map((call, index) => ({ call, index })).filter(({ index }) => isDrawn(index))
      if (oneOf > 1) t.comment(`${drawn.length} of ${calls.length} calls; ${replay}`)
      const deaths = kills ? drawn.map(({ index }) => killed(index + 1)) : []
      const failures = codes.flatMap((code) =>
        drawn.flatMap(({ call, index }) => (errors[code].test(call) ? [failed(index + 1, code)] : [])),
      )
      t.ok(deaths.length + failures.length > 10, 'there is something to sweep')
      await spread(root, [...deaths, ...failures])
      t.same(wrong, [])
    })
  }
}
