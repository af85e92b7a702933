import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { project } from '../../project.js'
import { testFiles } from '../../runner/files.js'
import { suites } from '../../runner/suites.js'
import { testedRows } from '../../tested.js'
import { scenarios } from '../model/scenarios.js'

/** Something that a mutant is put before: a test file, or the model disk on one scenario. */
export interface Item {
  /** The test file's path, or `model: ` and the scenario. */
  readonly name: string
  /** The program with its arguments, in a copy. */
  readonly command: readonly string[]
  /** A test file; all else is a program. */
  readonly isTest: boolean
  /** Minutes on a busy machine: only for what all others let live. */
  readonly heavy: boolean
  /** A hash of the item's inputs besides the program. */
  readonly hash: string
}

export function hashOf(...texts: readonly string[]): string {
  const hash = createHash('sha256')
  for (const text of texts) hash.update(text).update('\0')
  return hash.digest('hex').slice(0, 10)
}

const testsIn = (room: string, chosen = /\.test\.ts$/): string[] =>
  readdirSync(join(project, 'test', room), { recursive: true, encoding: 'utf8' })
    .filter((name) => chosen.test(name) && name.endsWith('.test.ts'))
    .map((name) => `test/${room}/${name}`)

/** Of static pods, those that come to the disk. */
const staticPods =
  /(?:^|\/)(held|install[.]|install-f|last-known|library-go-r|monitor|newer|older|orphaned|prune|rollout|two-owners|watch-start)/

/** Rooms that are copied beside the program and the crash suites, for those tests. */
export const rooms = [
  'test/runner',
  'test/static-pods',
  'test/directories',
  'test/kubernetes',
  'test/objects',
  'test/cli',
  'test/e2e',
  'test/agent',
  'bench',
]

function read(path: string): string {
  return readFileSync(join(project, path), 'utf8')
}

function modelItems(): Item[] {
  const texts = ['test/crash/model', 'test/disk'].flatMap((room) =>
    readdirSync(join(project, room), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .sort()
      .map((name) => read(`${room}/${name}`)),
  )
  const hash = hashOf(...texts)
  return scenarios.map(({ name }) => ({
    name: `model: ${name}`,
    command: ['test/crash/model/main.js', '--effort', 'brief', '--impatient', '--seed', '1', '--only', name],
    isTest: false,
    heavy: name.startsWith('a batch') || name === 'replacement',
    hash,
  }))
}

/** A test's own directory: the scenes, and their rules. */
function besides(name: string): string[] {
  if (!name.endsWith('calls.test.ts')) return []
  return readdirSync(join(project, 'test/durable/calls'))
    .sort()
    .map((file) => read(`test/durable/calls/${file}`))
}

const ofTest = (name: string): Item => ({
  name,
  command: [name.replace(/\.ts$/, '.js')],
  isTest: true,
  heavy: false,
  hash: hashOf(read(name), ...besides(name)),
})

/** What a mutant outside the core can be put before: the tests that need no control plane and no node. */
export const everyTest = (): Item[] => testFiles().filter(suites.unit.holds).map(ofTest)

/** The commands of people on a directory: their tests hold most of the refusals. */
const commands = ['adopt', 'diff', 'history', 'hold', 'remove', 'replace', 'rollback', 'write']

/**
 * These fail in a copy by themselves: it can write nothing to /dev/shm, what another process mounts there is not told from its own, and the
 * program there is not bundled.
 */
const elsewhere = [
  'test/cli/unproven.test.ts',
  'test/static-pods/rollout/rollout-mounted.test.ts',
  'test/native/missing-koffi.test.ts',
]

/** Tests that test/README.md names for a source which is changed, in a room that is copied. */
const namedTests = (): string[] =>
  testedRows()
    .filter(({ sources }) => sources.some((source) => /^(native|src\/(durable|static-pods))\//.test(source)))
    .flatMap(({ tests }) => tests)
    .filter(
      (name) => [...rooms, 'test/check'].some((room) => name.startsWith(`${room}/`)) && !/^test\/e2e\//.test(name),
    )

/** All that a mutant can be put before. */
export function battery(): Item[] {
  const names = new Set([
    ...namedTests(),
    ...commands.map((name) => `test/cli/commands/${name}.test.ts`),
    ...testsIn('native'),
    ...testsIn('durable'),
    ...testsIn('crash/file-system'),
    ...testsIn('static-pods', staticPods),
    'test/errors.test.ts',
    'test/parallel.test.ts',
    'test/crash/syscalls/aio.test.ts',
    'test/agent/file-systems.test.ts',
    'test/agent/process-identity.test.ts',
    'test/check/file-systems.test.ts',
    'test/check/fixed-target.test.ts',
    'test/check/results.test.ts',
    'test/check/targets.test.ts',
    'test/cli/let-go.test.ts',
    'test/cli/two-agents.test.ts',
    'test/directories/pid-file.test.ts',
    'test/static-pods/pod/kubelet-cases.test.ts',
    'test/static-pods/pod/pod-faults.test.ts',
    'test/static-pods/pod/same-pod.test.ts',
    'test/static-pods/ready/ready-url.test.ts',
    'test/directories/content-check.test.ts',
    'test/cli/core-dumps.test.ts',
    'test/cli/output/orphans.test.ts',
  ])
  const tests = [...names].filter((name) => !elsewhere.includes(name)).map(ofTest)
  return [...tests, ...modelItems()].sort((a, b) => Number(a.heavy) - Number(b.heavy))
}
