import t from 'tap'
import { ReadBuffers } from '../../../src/durable/posix/calls.js'

const small = 16 * 1024
const piece = 256 * 1024

await t.test('a buffer is larger than the file, so that one read finds its end, up to a piece', async (t) => {
  const buffers = new ReadBuffers()
  for (const [size, length] of [
    [0, small],
    [small - 1, small],
    [small, small + 1],
    [small + 1, small + 2],
    [piece - 1, piece],
    [piece, piece],
    [10 * piece, piece],
  ] as const) {
    t.equal(buffers.take(size).length, length, `${size} bytes`)
  }
})

await t.test('small buffers are used again, eight at most; larger ones are not kept', async (t) => {
  const buffers = new ReadBuffers()
  const small = Array.from({ length: 10 }, () => buffers.take(1))
  t.equal(new Set(small).size, 10, 'none is given out twice')
  buffers.giveBack(buffers.take(piece))
  for (const one of small) buffers.giveBack(one)
  const again = Array.from({ length: 10 }, () => buffers.take(1))
  t.equal(again.filter((one) => small.includes(one)).length, 8)
})
