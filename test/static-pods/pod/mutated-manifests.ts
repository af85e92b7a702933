/** Manifests as people and programs break them: a few small changes of a text that kubelet takes. */
import fc from 'fast-check'
import { podTypes } from '../../../src/static-pods/pod/pod-types.js'
import { values } from './drawn-manifests.js'

export interface MutatedManifest {
  readonly text: string
  /** The pod's, as long as no change has broken it. */
  readonly uid: string
}

/** Draws whole numbers below `limit`. */
type Draw = (limit: number) => number

const fields = [
  ...new Set(Object.values(podTypes).flatMap((type) => Object.values(type).flatMap((names) => names.split(' ')))),
]

const marks = [
  ...[
    '---',
    '...',
    '# note',
    '%YAML 1.1',
    '--- # next',
    'null',
    '{}',
    '- x',
    '? a',
    ': b',
    '<<: *proxy',
    '&a',
    '!!map',
  ],
  ...['\t', '', '   ', '"', "'", '|', '>', '[', '}', '@', '`'],
]
const characters = [
  ...Array.from(':-#,[]{}&*!|>\'"%@`?~ \t\\.0_=<'),
  '\u00a0',
  '\u0085',
  '\u2028',
  '\ufeff',
  '\u0007',
  '\r',
  'é',
  '😀',
  '\n',
  ': ',
  ' #',
]
const odd = [
  ...'MyName a_b'.split(' '),
  'x'.repeat(64),
  ...'-a 80 65536 99999 http Always / ../x a/../b a:b 10.0.0.1 300.1.1.1 TCP tcp HTTPS https 1Gi 2'.split(' '),
  ...'-1Gi 0 Exists Equal NoSchedule metadata.name status.hostIP Memory'.split(' '),
  ...[
    '!!binary aGk=',
    '!!binary "?"',
    '!foo bar',
    '! 80',
    '!!timestamp 2001-01-01',
    '!!set {a}',
    '*proxy',
    '*none',
    '&x y',
    '|\n        8',
    '"a\\\n        b"',
  ],
]

const pick = <T>(draw: Draw, among: readonly T[]): T => among[draw(among.length)] as T

type Change = (lines: string[], draw: Draw) => void

const at = (lines: readonly string[], draw: Draw): number => draw(lines.length)

/** `names`: of the fields that the text may have. */
const changesWith = (names: readonly string[]): readonly Change[] => [
  (lines, draw) => void lines.splice(at(lines, draw), 1),
  (lines, draw) => {
    const index = at(lines, draw)
    lines.splice(index, 0, lines[index] ?? '')
  },
  (lines, draw) => {
    const index = at(lines, draw)
    lines.splice(index, 2, lines[index + 1] ?? '', lines[index] ?? '')
  },
  (lines, draw) => {
    const index = at(lines, draw)
    const line = lines[index] ?? ''
    lines[index] = pick(draw, [` ${line}`, `  ${line}`, line.slice(1), line.slice(2), `\t${line}`])
  },
  (lines, draw) => {
    const index = at(lines, draw)
    const line = lines[index] ?? ''
    const place = draw(line.length + 1)
    lines[index] = line.slice(0, place) + pick(draw, characters) + line.slice(place + draw(2))
  },
  (lines, draw) => void lines.splice(at(lines, draw), 0, pick(draw, marks)),
  (lines, draw) => {
    const index = at(lines, draw)
    const indent = /^[ -]*/.exec(lines[index] ?? '')?.[0].replaceAll('-', ' ') ?? ''
    lines.splice(index, 0, `${indent}${pick(draw, names)}: ${pick(draw, [...values, ...odd])}`)
  },
  ...Array.from({ length: 4 }, (): Change => replaceScalar),
  (lines, draw) => {
    const index = at(lines, draw)
    lines[index] = (lines[index] ?? '').replace(/[A-Za-z]+(?=:)/, () => pick(draw, names))
  },
  (lines, draw) => {
    const index = at(lines, draw)
    lines[index] = `${lines[index] ?? ''}${pick(draw, [' # why', '#why', ' ', '\r', ':', ' |', ','])}`
  },
]

/** The text behind a colon, a dash, or between brackets and commas. */
function replaceScalar(lines: string[], draw: Draw): void {
  const places = lines.flatMap((line, index) =>
    [...line.matchAll(/(?<=[:,-] |[[{])[^\s,[\]{}:][^,[\]{}]*?(?=$|[,\]}]| #)/g)].map((found) => ({ index, found })),
  )
  if (places.length === 0) return
  const { index, found } = pick(draw, places)
  const line = lines[index] ?? ''
  lines[index] =
    line.slice(0, found.index) + pick(draw, [...values, ...odd]) + line.slice(found.index + found[0].length)
}

/** One to three changes of one of the texts. */
export function mutated(
  texts: readonly string[],
  count: number,
  seed: number,
  names: readonly string[] = fields,
): MutatedManifest[] {
  const changes = changesWith(names)
  const numbers = fc.array(fc.nat(), { minLength: 16, maxLength: 16 })
  return fc.sample(numbers, { seed, numRuns: count }).map((drawn, index) => {
    let used = 0
    const draw: Draw = (limit) => (drawn[used++ % drawn.length] ?? 0) % Math.max(1, limit)
    const uid = `m-${index}`
    // kubelet's source keeps one pod of a name.
    const text = pick(draw, texts)
      .replace(/^ {2}uid: .*\n/m, '')
      .replace(/^ {2}name: .*\n/m, `  uid: ${uid}\n  name: ${uid}\n`)
    const lines = text.split('\n')
    for (let left = 1 + draw(2); left > 0; left--) pick(draw, changes)(lines, draw)
    return { uid, text: lines.join('\n') }
  })
}
