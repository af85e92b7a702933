/** The runs: which program publishes which content, by turns, on one disk. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { history, replaceDirectories as keepingDirectories } from '../src/durable/index.js'
import { replaceDirectories, replaceDirectory } from '../src/index.js'
import type { Disk } from '../test/disk/disk.js'
import { replaceInLibraryGoOrder } from './library-go-order.js'
import { costOf, type Cost, writtenCostOf, type WrittenCost } from './measure.js'

/** Of each file. */
export const fileBytes = 4096
const batchTargets = 30
const batchFiles = 2
const keptContents = 5

/** Costs of the two that are compared, round by round. */
export interface Contest<Ours extends Cost = Cost> {
  ours: Ours[]
  compared: Cost[]
}

type Files = Record<string, Uint8Array>

/** `count` files of 4 KiB, other ones in every round. */
function content(count: number, round: number): Files {
  const names = Array.from({ length: count }, (_, index) => `file-${String(index).padStart(4, '0')}`)
  return Object.fromEntries(names.map((name) => [name, Buffer.alloc(fileBytes, `${name} of round ${round}\n`)]))
}

function prepare(target: string, files: Files): void {
  mkdirSync(target, { recursive: true })
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(target, name), bytes, { mode: 0o600 })
}

/** A run that did not publish would be the fastest of all. */
function verify(target: string, files: Files): void {
  for (const [name, bytes] of Object.entries(files)) {
    if (!readFileSync(join(target, name)).equals(bytes)) throw new Error(`${target} was not replaced`)
  }
}

/**
 * One directory of `count` files, all of them changed: replaceDirectory beside library-go's order of calls, in the first
 * `comparedRounds` of the rounds.
 */
export async function contestOneDirectory(
  disk: Disk,
  count: number,
  rounds: number,
  comparedRounds = rounds,
): Promise<Contest<WrittenCost>> {
  const [ours, compared] = ['holdfast', 'library-go'].map((name) => join(disk.mountPoint, `${name}-${count}`, 'target'))
  if (ours === undefined || compared === undefined) throw new Error('two targets')
  for (const target of [ours, compared]) prepare(target, content(count, 0))
  const contest: Contest<WrittenCost> = { ours: [], compared: [] }
  // Round 0 is not counted: a first publication has no record to replace, and the code is cold.
  for (let round = 0; round <= rounds; round++) {
    const files = content(count, round + 1)
    const mine = await writtenCostOf(disk, async () => {
      await replaceDirectory(ours, { files })
    })
    verify(ours, files)
    if (round === 0) continue
    contest.ours.push(mine)
    if (round > comparedRounds) continue
    const other = await costOf(disk, () => {
      replaceInLibraryGoOrder(compared, join(compared, '..', 'staging'), files)
    })
    verify(compared, files)
    contest.compared.push(other)
  }
  return contest
}

/** 30 directories of two files, side by side or each in another parent, in one call, beside one such directory. */
export async function contestBatch(disk: Disk, parents: 'one' | 'own', rounds: number): Promise<Contest> {
  const root = join(disk.mountPoint, `batch-${parents}`)
  const place = (name: string): string => (parents === 'one' ? join(root, name) : join(root, name, 'target'))
  const single = place('single')
  const targets = Array.from({ length: batchTargets }, (_, index) => place(`target-${index}`))
  for (const target of [single, ...targets]) prepare(target, content(batchFiles, 0))
  const contest: Contest = { ours: [], compared: [] }
  for (let round = 0; round <= rounds; round++) {
    const files = content(batchFiles, round + 1)
    const one = await costOf(disk, async () => {
      await replaceDirectory(single, { files })
    })
    const all = await costOf(disk, async () => {
      for (const outcome of await replaceDirectories(targets.map((target) => ({ target, files })))) {
        if ('error' in outcome) throw outcome.error
      }
    })
    for (const target of [single, ...targets]) verify(target, files)
    if (round === 0) continue
    contest.ours.push(all)
    contest.compared.push(one)
  }
  return contest
}

/** One directory of `count` files that keeps five earlier contents, beside one of `comparedCount` that keeps none. */
export async function contestHistory(
  disk: Disk,
  count: number,
  rounds: number,
  comparedCount = count,
): Promise<Contest> {
  const place = (name: string): string => join(disk.mountPoint, `history-${name}`, 'target')
  const [ours, compared] = [place('kept'), place('none')]
  const filesOf = (target: string, round: number): Files => content(target === ours ? count : comparedCount, round)
  // Earlier measurements have left their history.
  for (const target of [ours, compared]) rmSync(dirname(target), { recursive: true, force: true })
  for (const target of [ours, compared]) prepare(target, filesOf(target, 0))
  const contest: Contest = { ours: [], compared: [] }
  // The first publications are not counted: nothing of theirs is history yet, and nothing goes.
  for (let round = 0; round <= rounds; round++) {
    const costFor = (target: string, keep: number) =>
      costOf(disk, async () => {
        const files = filesOf(target, round + 1)
        for (const outcome of await keepingDirectories([{ target, files, history: { keep, maxAge: null } }])) {
          if ('error' in outcome) throw outcome.error
        }
      })
    const [mine, other] = [await costFor(ours, keptContents), await costFor(compared, 0)]
    for (const target of [ours, compared]) verify(target, filesOf(target, round + 1))
    if (round === 0) continue
    await verifyHistory(ours, Math.min(round, keptContents))
    await verifyHistory(compared, 0)
    contest.ours.push(mine)
    contest.compared.push(other)
  }
  return contest
}

/** A history that is not kept would cost nothing. */
async function verifyHistory(target: string, count: number): Promise<void> {
  const earlier = ((await history.read(target)) ?? []).filter(({ state }) => state === 'whole')
  if (earlier.length !== count) throw new Error(`${target} has ${earlier.length} earlier contents, not ${count}`)
}
