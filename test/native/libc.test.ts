import t from 'tap'
import { missingKoffi } from '../../native/missing-koffi.js'
import { systemCallNumbers } from './system-call-numbers.js'
import {
  checkDescriptor,
  checkDirectory,
  checkInteger,
  checkText,
  systemCallNumber,
  workingDirectory,
} from '../../native/libc.js'

await t.test('a system call has the number of the machine', async (t) => {
  for (const [name, [x64, arm64]] of Object.entries(systemCallNumbers)) {
    const call = name as keyof typeof systemCallNumbers
    t.equal(systemCallNumber(call, 'x64'), x64, name)
    t.equal(systemCallNumber(call, 'arm64'), arm64, name)
    t.equal(systemCallNumber(call), process.arch === 'x64' ? x64 : arm64, name)
    t.throws(() => systemCallNumber(call, 'riscv64'), { message: /of x64 and arm64, not of riscv64$/ })
  }
})

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

await t.test('a failure of loading koffi that is no missing file is told as it is', async (t) => {
  const error = Object.assign(new Error('too many open files'), { code: 'EMFILE' })
  t.equal(missingKoffi(error), error)
})
