/** Random numbers that can be had again: the same seed gives the same ones. */
import { createHash } from 'node:crypto'

/** HOLDFAST_E2E_SEED, or a new one. A test that draws from it prints it. */
export const seed = process.env['HOLDFAST_E2E_SEED'] ?? String(Math.floor(Math.random() * 1e9))

/** A source of numbers in [0, 1). */
export function randomNumbers(seed: string): () => number {
  let drawn = 0
  return () => createHash('sha256').update(`${seed} ${drawn++}`).digest().readUInt32BE() / 2 ** 32
}
