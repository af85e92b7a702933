import t from 'tap'
import { wrapError } from '../../src/durable/errors.js'

await t.test('the advice of an EACCES names the right to read or to write by the denied call', async (t) => {
  const say = (syscall: string, path: string) => {
    const error = Object.assign(new Error('denied'), { code: 'EACCES', syscall, path })
    return wrapError('/srv/target', error, false, 'could not publish').message
  }
  t.match(
    say('open', '/srv/.holdfast-0123456789abcdef.lock'),
    /run as a user who may write here, or grant CAP_DAC_OVERRIDE$/,
  )
  t.match(say('open', '/srv/target/tls.key'), /run as a user who may read what is there, or grant CAP_DAC_OVERRIDE$/)
  t.match(
    say('mkdir', '/srv/.holdfast-0123456789abcdef-0123456789abcdef'),
    /run as a user who may write here, or grant CAP_DAC_OVERRIDE$/,
  )
  t.match(say('unlink', '/srv/target/tls.key'), /run as a user who may write here, or grant CAP_DAC_OVERRIDE$/)
})

await t.test('the advice names a umask that takes permissions from the owner', async (t) => {
  const error = Object.assign(new Error('denied'), { code: 'EACCES', syscall: 'open', path: '/srv/.holdfast-1' })
  const before = process.umask(0o700)
  try {
    t.match(
      wrapError('/srv/target', error, false, 'could not publish').message,
      /the umask 0700 takes permissions from the owner of each new file: set it to 0077 or less$/,
    )
  } finally {
    process.umask(before)
  }
})
