import t from 'tap'
import { parseDuration } from '../../src/config/duration.js'
import { nearestWord } from '../../src/config/value.js'

await t.test('parseDuration reads durations as Go writes them', async (t) => {
  const durations: [string, number | undefined][] = [
    ['0', 0],
    ['10s', 10_000],
    ['1m30s', 90_000],
    ['500ms', 500],
    ['1.5h', 5_400_000],
    ['.5s', 500],
    ['1.s', 1000],
    ['1h1m1s1ms', 3_661_001],
    ['2us', 0.002],
    ['2µs', 0.002],
    ['1ns', 1e-6],
    ['', undefined],
    ['1', undefined],
    ['s', undefined],
    ['-1s', undefined],
    ['1 s', undefined],
    ['1s ', undefined],
    ['1d', undefined],
    ['1.2.3s', undefined],
    [`${'9'.repeat(400)}s`, undefined],
    // What Go's 64 bits of nanoseconds cannot hold.
    ['2562047h47m16.854775s', 9_223_372_036_854.775],
    ['2562047h47m17s', undefined],
    ['2562047h3000000s', undefined],
  ]
  for (const [text, expected] of durations) t.equal(parseDuration(text), expected, text)
})

await t.test('nearest finds the intended word', async (t) => {
  const known = ['publish', 'path', 'mode', 'fileMode']
  t.equal(nearestWord('pubilsh', known), 'publish', 'two letters swapped')
  t.equal(nearestWord('filemode', known), 'fileMode', 'another case')
  t.equal(nearestWord('mod', known), 'mode')
  t.equal(nearestWord('colour', known), undefined)
  t.equal(nearestWord('x'.repeat(100_000), known), undefined)
  const long = 'x'.repeat(63)
  t.equal(nearestWord(`${long}y`, [`${long}z`]), `${long}z`, 'the longest word that is compared')
})
