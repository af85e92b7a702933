import t from 'tap'
import { systemCallNumbers } from './system-call-numbers.js'
import { systemCallNumber } from '../../native/libc.js'

await t.test('a system call has the number of the machine', async (t) => {
  for (const [name, [x64, arm64]] of Object.entries(systemCallNumbers)) {
    const call = name as keyof typeof systemCallNumbers
    t.equal(systemCallNumber(call, 'x64'), x64, name)
    t.equal(systemCallNumber(call, 'arm64'), arm64, name)
    t.equal(systemCallNumber(call), process.arch === 'x64' ? x64 : arm64, name)
    t.throws(() => systemCallNumber(call, 'riscv64'), { message: /of x64 and arm64, not of riscv64$/ })
  }
})
