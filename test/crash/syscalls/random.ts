/** Numbers that a seed gives again: Marsaglia's xorshift32. */
export function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0 || 1
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state % below
  }
}

export { seed } from '../../seed.js'

/** The same items in another order. */
export function shuffled<T>(items: readonly T[], random: (below: number) => number): T[] {
  const rest = [...items]
  const order: T[] = []
  while (rest.length > 0) order.push(...rest.splice(random(rest.length), 1))
  return order
}
