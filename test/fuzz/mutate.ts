/** Inputs made from earlier ones by small changes, drawn from a seed. */
import type { Random } from '../random.js'

interface Sources {
  /** Inputs that reached something new, each. */
  readonly corpus: readonly Buffer[]
  readonly words: readonly Buffer[]
  /** Bytes of the longest result. */
  readonly longest: number
}

type Change = (input: Buffer, random: Random, sources: Sources) => Buffer

/** From one of the corpus, by one to some changes. */
export function mutated(random: Random, sources: Sources): Buffer {
  // The later half of the corpus is the less known one.
  const { corpus, longest } = sources
  const from = random.below(2) === 0 ? 0 : Math.floor(corpus.length / 2)
  let input = corpus[from + random.below(corpus.length - from)] ?? Buffer.alloc(0)
  do input = random.pick(changes)(input, random, sources).subarray(0, longest)
  while (random.below(3) > 0)
  return input
}

const signs = Buffer.from('\0\t\n\r !"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~\x7f\x80\xbf\xc2\xe2\xff09azAZ', 'latin1')

/** Numbers at the edges of types, and beyond. */
const numbers = [
  '0',
  '-1',
  '1',
  '7',
  '08',
  '255',
  '65536',
  '2147483648',
  '9007199254740993',
  '18446744073709551616',
  '1e400',
  '0.1',
]

const changes: readonly Change[] = [
  setByte,
  insertSign,
  insertWord,
  insertWord,
  replaceByWord,
  remove,
  remove,
  duplicate,
  multiply,
  splice,
  splice,
  swap,
  changeNumber,
]

function setByte(input: Buffer, random: Random): Buffer {
  if (input.length === 0) return input
  const copy = Buffer.from(input)
  const at = random.below(copy.length)
  copy[at] = random.below(2) === 0 ? (copy[at] ?? 0) ^ (1 << random.below(8)) : random.below(256)
  return copy
}

function insertSign(input: Buffer, random: Random): Buffer {
  const at = random.below(signs.length)
  return replaced(input, place(input, random), 0, signs.subarray(at, at + 1))
}

function insertWord(input: Buffer, random: Random, { words }: Sources): Buffer {
  return words.length === 0 ? input : replaced(input, place(input, random), 0, random.pick(words))
}

function replaceByWord(input: Buffer, random: Random, { words }: Sources): Buffer {
  const [from, length] = part(input, random, 16)
  return words.length === 0 ? input : replaced(input, from, length, random.pick(words))
}

function remove(input: Buffer, random: Random): Buffer {
  const [from, length] = part(input, random, 64)
  return replaced(input, from, length, Buffer.alloc(0))
}

function duplicate(input: Buffer, random: Random): Buffer {
  const [from, length] = part(input, random, 256)
  return replaced(input, place(input, random), 0, input.subarray(from, from + length))
}

/** So often that more than linear time, and depth without a limit, show. */
function multiply(input: Buffer, random: Random, { longest }: Sources): Buffer {
  const [from, length] = part(input, random, 8)
  if (length === 0) return input
  // Seldom often: a long input takes the time of hundreds.
  const most = Math.ceil(Math.log2(longest / length)) + 1
  const times = 2 ** Math.min(random.below(most), random.below(most))
  const piece = Buffer.concat(Array.from({ length: times }, () => input.subarray(from, from + length)))
  return replaced(input, from, length, piece)
}

/** The beginning of one and the end of another. */
function splice(input: Buffer, random: Random, { corpus }: Sources): Buffer {
  const other = corpus[random.below(corpus.length)] ?? input
  return Buffer.concat([input.subarray(0, place(input, random)), other.subarray(place(other, random))])
}

function swap(input: Buffer, random: Random): Buffer {
  const [from, length] = part(input, random, 32)
  const cut = replaced(input, from, length, Buffer.alloc(0))
  return replaced(cut, place(cut, random), 0, input.subarray(from, from + length))
}

function changeNumber(input: Buffer, random: Random): Buffer {
  const found = [...input.toString('latin1').matchAll(/\d+/g)]
  if (found.length === 0) return input
  const { index, 0: digits } = random.pick(found)
  return replaced(input, index, digits.length, Buffer.from(random.pick(numbers)))
}

function place(input: Buffer, random: Random): number {
  return random.below(input.length + 1)
}

function part(input: Buffer, random: Random, most: number): [from: number, length: number] {
  const from = place(input, random)
  return [from, Math.min(input.length - from, 1 + random.below(most))]
}

function replaced(input: Buffer, from: number, length: number, by: Buffer): Buffer {
  return Buffer.concat([input.subarray(0, from), by, input.subarray(from + length)])
}
