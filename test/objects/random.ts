/** Random numbers that a seed replays: SEED in the environment, or a new one, which the test prints. */
export function seededRandom(): { random: () => number; seed: number } {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31))
  let state = seed >>> 0
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return { random, seed }
}
