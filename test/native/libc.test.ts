import t from 'tap'
import { systemCallNumber } from '../../native/libc.js'

await t.test('a system call has the number of the machine', (t) => {
  // x64, arm64: as strace and the C library know them.
  const numbers = {
    io_setup: [206, 0],
    io_submit: [209, 2],
    io_getevents: [208, 4],
    openat2: [437, 437],
    prctl: [157, 167],
    renameat2: [316, 276],
    statx: [332, 291],
  } as const
  for (const [name, [x64, arm64]] of Object.entries(numbers)) {
    const call = name as keyof typeof numbers
    t.equal(systemCallNumber(call, 'x64'), x64, name)
    t.equal(systemCallNumber(call, 'arm64'), arm64, name)
    t.equal(systemCallNumber(call), process.arch === 'x64' ? x64 : arm64, name)
    t.throws(() => systemCallNumber(call, 'riscv64'), { message: /of x64 and arm64, not of riscv64$/ })
  }
  t.end()
})
