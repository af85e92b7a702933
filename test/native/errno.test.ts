import { constants } from 'node:os'
import t from 'tap'
import { errnoName, errnoOf, SystemError } from '../../native/index.js'

await t.test('errnoName has a name for every errno, and of two names the first one in POSIX', async (t) => {
  const second: Readonly<Record<string, string>> = { EWOULDBLOCK: 'EAGAIN', EOPNOTSUPP: 'ENOTSUP' }
  for (const [name, number] of Object.entries(constants.errno)) t.equal(errnoName(number), second[name] ?? name)
  for (const [name, number] of Object.entries(constants.errno)) t.equal(errnoOf(second[name] ?? name), number)
  for (const errno of [4711, 41, 58, 0, -1]) t.equal(errnoName(errno), `E${errno}`)
})

await t.test('no errno of Linux is without a name, and none has two', async (t) => {
  // Linux has no 41 and no 58: each was a second name of another.
  const all = Array.from({ length: 133 }, (_, before) => before + 1).filter((errno) => errno !== 41 && errno !== 58)
  const found = all.map(errnoName)
  t.same(
    all.filter((errno) => errnoName(errno) === `E${errno}`),
    [],
  )
  t.equal(new Set(found).size, all.length)
  t.strictSame([117, 122, 126, 133].map(errnoName), ['EUCLEAN', 'EDQUOT', 'ENOKEY', 'EHWPOISON'])
})

await t.test('a failure names call, path where there is one, and errno', async (t) => {
  const cause = new Error('the cause')
  const error = new SystemError('renameat2', constants.errno.EXDEV, '/a', { cause })
  t.match(error, { name: 'SystemError', code: 'EXDEV', syscall: 'renameat2', path: '/a', cause })
  t.equal(error.message, 'renameat2 /a: EXDEV')
  t.equal(new SystemError('flock', constants.errno.EBADF, undefined).message, 'flock: EBADF')
})
