import { Finding, type Target } from '../target.js'

/** Faults that the fuzzer has to find, each behind bytes that coverage alone leads to, or that a limit alone shows. */
const faults: Readonly<Record<string, (text: string) => void>> = {
  deep(text) {
    if (text[0] !== 'z') return
    if (text[1] !== '0') return
    if (text[2] !== 'A') return
    if (text[3] === '!') throw new Finding('found')
  },
  endless(text) {
    while (text.startsWith('z'));
  },
  slow(text) {
    const start = process.cpuUsage()
    const used = (): number => process.cpuUsage(start).user + process.cpuUsage(start).system
    while (text.startsWith('z') && used() < 40_000);
  },
  heap(text) {
    const held: string[][] = []
    while (text.startsWith('z')) held.push(Array.from({ length: 1000 }, (_, at) => `${held.length}-${at}`))
  },
  stack(text) {
    const nested = (depth: number): number => (depth === 0 ? 0 : 1 + nested(depth - 1))
    nested(text.startsWith('z') ? 1_000_000 : 1)
  },
}

export function planted(fault: string): Target {
  return {
    name: `planted-${fault}`,
    files: [],
    longest: 64,
    words: [],
    read: (input) => {
      faults[fault]?.(input.toString('latin1'))
    },
  }
}
