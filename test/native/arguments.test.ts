import t from 'tap'
import { checkDescriptor, checkDirectory, checkInteger, checkText, workingDirectory } from '../../native/arguments.js'

const refused = (message: string | RegExp): { name: string; message: string | RegExp } => ({
  name: 'TypeError',
  message,
})

await t.test('a descriptor is an integer of the kernel’s range', async (t) => {
  t.doesNotThrow(() => [0, 0x7fffffff].map(checkDescriptor))
  for (const fd of [0, 1, 0x7fffffff]) t.equal(checkDescriptor(fd), fd)
  for (const fd of [-1, -100, 0.5, Number.NaN, Infinity, 0x80000000]) {
    t.throws(() => checkDescriptor(fd), refused(`not a file descriptor: ${fd}`))
  }
  t.equal(checkDirectory(workingDirectory), -100, 'AT_FDCWD')
  t.equal(checkDirectory(3), 3)
  for (const fd of [-99, -101]) t.throws(() => checkDirectory(fd), refused(`not a file descriptor: ${fd}`))
})

await t.test('a path is what the kernel will read, all of it', async (t) => {
  for (const path of ['/', 'a', ' ']) t.equal(checkText(path), path)
  t.throws(() => checkText(''), refused(/not empty/))
  // A value with the methods of a string is no string.
  t.throws(() => checkText(['\0'] as unknown as string), refused(/must be a string/))
  t.throws(() => checkText(7 as unknown as string), refused(/must be a string/))
  for (const path of ['a\0b', '\0']) t.throws(() => checkText(path), refused(/NUL/))
})

await t.test('an integer is between its bounds, both allowed', async (t) => {
  t.doesNotThrow(() => [2, 4].map((value) => checkInteger('flags', value, 2, 4)))
  for (const value of [2, 3, 4]) t.equal(checkInteger('flags', value, 2, 4), value)
  for (const value of [1, 5, 2.5, Number.NaN]) {
    t.throws(() => checkInteger('flags', value, 2, 4), refused(`flags must be an integer from 2 to 4, not ${value}`))
  }
})
