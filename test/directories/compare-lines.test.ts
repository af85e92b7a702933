/** A unified diff: its lines turn the one text into the other, and too large texts and binary files are not compared line by line. */
import fc from 'fast-check'
import t from 'tap'
import { compareLines } from '../../src/directories/compare-lines.js'
import { holds } from '../property.js'

const bytes = (text: string): Uint8Array => Buffer.from(text)

function linesBetween(before: string, after: string): readonly string[] {
  const answer = compareLines(bytes(before), bytes(after))
  if ('hidden' in answer) throw new Error(answer.hidden)
  return answer.lines
}

/** As patch(1) does it: each hunk must fit where it says. */
function apply(before: string, lines: readonly string[]): string {
  const old = before.match(/[^\n]*\n|[^\n]+$/g) ?? []
  const made: string[] = []
  let read = 0
  for (const [index, line] of lines.entries()) {
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@$/.exec(line)
    if (hunk) {
      const start = Number(hunk[1]) - (hunk[2] === '0' ? 0 : 1)
      made.push(...old.slice(read, start))
      read = start
      if (made.length !== Number(hunk[3]) - (hunk[4] === '0' ? 0 : 1)) throw new Error(`${line} begins elsewhere`)
      continue
    }
    if (line.startsWith('\\')) continue
    const text = line.slice(1) + (lines[index + 1]?.startsWith('\\') ? '' : '\n')
    if (line.startsWith('+')) made.push(text)
    else if (old[read] !== text) throw new Error(`${JSON.stringify(line)} is not line ${read}`)
    else {
      read++
      if (line.startsWith(' ')) made.push(text)
    }
  }
  return [...made, ...old.slice(read)].join('')
}

await t.test('compareLines prints what diff -u prints', async (t) => {
  const old = ['1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12', ''].join('\n')
  const now = old.replace('2\n', 'two\n').replace('10\n', '').replace('12\n', '12')
  t.strictSame(linesBetween(old, now), [
    '@@ -1,5 +1,5 @@',
    ...[' 1', '-2', '+two', ' 3', ' 4', ' 5'],
    '@@ -7,6 +7,5 @@',
    ...[' 7', ' 8', ' 9', '-10', ' 11', '-12', '+12', '\\ No newline at end of file'],
  ])
  t.strictSame(linesBetween('', 'a\nb\n'), ['@@ -0,0 +1,2 @@', '+a', '+b'])
  t.strictSame(linesBetween('a\n', ''), ['@@ -1 +0,0 @@', '-a'])
  t.strictSame(compareLines(undefined, bytes('a\n')), { lines: ['@@ -0,0 +1 @@', '+a'] })
  t.strictSame(linesBetween('a\n', 'a\n'), [])
})

await t.test('compareLines makes a patch that turns the one text into the other', (t) => {
  const text = fc
    .array(fc.constantFrom('a\n', 'b\n', 'c\n', '\n', 'a'), { maxLength: 40 })
    .map((lines) => lines.join(''))
  const property = fc.property(text, text, (before, after) => apply(before, linesBetween(before, after)) === after)
  return holds(t, 'a diff is a patch', property, { runs: 400 })
})

await t.test('compareLines refuses bytes that are no text, and too many lines or changes', async (t) => {
  t.match(compareLines(Buffer.from([0xff, 0xfe]), bytes('')), { hidden: /no text in UTF-8/ })
  t.match(compareLines(bytes(''), bytes('a\0b')), { hidden: /no text in UTF-8/ })
  t.match(compareLines(bytes(''), bytes('a\n'.repeat(20_001))), { hidden: /more than 20000 lines/ })
  t.match(compareLines(bytes('a\n'.repeat(600)), bytes('b\n'.repeat(600))), { hidden: /too many of its lines/ })
})
