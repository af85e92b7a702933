import { constants } from 'node:os'
import t from 'tap'
import { errnoName, SystemError } from '../../native/index.js'

await t.test('every errno has its name, and of two names the one that POSIX lists first', (t) => {
  const { EAGAIN, EWOULDBLOCK, ENOTSUP, EOPNOTSUPP, ENOENT } = constants.errno
  t.equal(errnoName(ENOENT), 'ENOENT')
  for (const errno of [EAGAIN, EWOULDBLOCK]) t.equal(errnoName(errno), 'EAGAIN')
  for (const errno of [ENOTSUP, EOPNOTSUPP]) t.equal(errnoName(errno), 'ENOTSUP')
  t.equal(errnoName(4711), 'E4711')
  t.end()
})

await t.test('a failure names call, path where there is one, and errno', (t) => {
  const cause = new Error('the cause')
  const error = new SystemError('renameat2', constants.errno.EXDEV, '/a', { cause })
  t.match(error, { name: 'SystemError', code: 'EXDEV', syscall: 'renameat2', path: '/a', cause })
  t.equal(error.message, 'renameat2 /a: EXDEV')
  t.equal(new SystemError('flock', constants.errno.EBADF, undefined).message, 'flock: EBADF')
  t.end()
})
