import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../../src/errors.js'
import { project } from '../project.js'
import { ownTest as testOf } from '../tested.js'
import { type Change, type Edit, edited } from './changes.js'
import { core } from './program.js'

/** Suites that a mutation can be put before, cheapest first; the columns of the table. */
export const suiteNames = ['own test', 'model', 'histories', 'syscalls', 'power'] as const
export type SuiteName = (typeof suiteNames)[number]

/** A suite that must catch a mutation, and where in the suite: a usual run puts only this before it, a long one all. */
export type Catcher =
  /** Scenarios, and ways to explore them, whose names hold these; '' for each, until one catches it. */
  | { readonly suite: 'model'; readonly only: string; readonly phase: string }
  /** Generated histories on the model disk. */
  | { readonly suite: 'histories' }
  /** Faults at the sites whose description holds this; undefined: the steps that every run must make, and no fault. */
  | { readonly suite: 'syscalls'; readonly sites: string | undefined }
  | { readonly suite: 'power'; readonly fileSystem: 'ext4' | 'xfs' | 'btrfs'; readonly only: string }
  /** A test file, by the end of its path without `.test.ts`; undefined: the test of the first file that is changed. */
  | { readonly suite: 'own test'; readonly name: string | undefined; readonly needsRoot: boolean }

export const model = (only = '', phase = ''): Catcher => ({ suite: 'model', only, phase })
export const histories: Catcher = { suite: 'histories' }
export const syscalls = (sites?: string): Catcher => ({ suite: 'syscalls', sites })
export const power = (fileSystem: 'ext4' | 'xfs' | 'btrfs', only: string): Catcher => ({
  suite: 'power',
  fileSystem,
  only,
})
export const ownTest = (name?: string): Catcher => ({ suite: 'own test', name, needsRoot: false })
export const ownTestOfRoot = (name?: string): Catcher => ({ suite: 'own test', name, needsRoot: true })

/** One step of the core removed or weakened. */
export interface Mutation {
  readonly name: string
  readonly changes: readonly Change[]
  /** All of these must catch it. The first is the cheapest: it and those on real disks are what a usual run asks. */
  readonly caughtBy: readonly [Catcher, ...Catcher[]]
}

/** Mutations by their names: what each changes, in one place of the core or in several. */
export function caught(
  caughtBy: readonly [Catcher, ...Catcher[]],
  mutations: Readonly<Record<string, Change | readonly Change[]>>,
): Mutation[] {
  return Object.entries(mutations).map(([name, changes]) => ({ name, changes: [changes].flat(), caughtBy }))
}

/** Throws where a change fits the core no more. */
export function editsOf({ changes }: Pick<Mutation, 'changes'>): Edit[] {
  return changes.flatMap((change) => change.edits(core()))
}

/** Why a mutation fits the core no more; undefined where it does. */
export function misfit(mutation: Mutation): string | undefined {
  try {
    const edits = editsOf(mutation)
    for (const { file } of edits)
      edited(
        '',
        edits.filter((one) => one.file === file),
      )
    return undefined
  } catch (error) {
    return `${mutation.name}: ${messageOf(error)}`
  }
}

/** The path of a test that must catch a mutation. Throws where there is not one of this name. */
export function testFile({ name }: Catcher & { suite: 'own test' }, mutation: Mutation): string {
  if (name === undefined) return testOf(editsOf(mutation)[0]?.file ?? '')
  const paths = readdirSync(join(project, 'test'), { recursive: true, encoding: 'utf8' })
  const found = paths.map((path) => `test/${path}`).filter((path) => path.endsWith(`/${name}.test.ts`))
  const [file = ''] = found
  if (found.length !== 1) throw new Error(`${found.length} tests are called ${name}: ${found.join(', ')}`)
  return file
}
