import t from 'tap'
import { wrapError } from '../../src/durable/errors.js'

const say = (syscall: string, path: string) => {
  const error = Object.assign(new Error('denied'), { code: 'EACCES', syscall, path })
  return wrapError('/srv/target', error, false, 'could not publish').message
}
const isRoot = process.geteuid?.() === 0

await t.test('the advice of an EACCES names the right to read or to write by the denied call', async (t) => {
  // The kernel takes the capabilities of a process away that is no longer root.
  if (isRoot) process.seteuid?.(65_534)
  t.teardown(() => isRoot && process.seteuid?.(0))
  const [write, read] = ['write here', 'read what is there'].map(
    (what) => new RegExp(`run as a user who may ${what}, or grant CAP_DAC_OVERRIDE$`),
  )
  t.match(say('open', '/srv/.holdfast-0123456789abcdef.lock'), write)
  t.match(say('open', '/srv/target/tls.key'), read)
  t.match(say('mkdir', '/srv/.holdfast-0123456789abcdef-0123456789abcdef'), write)
  t.match(say('unlink', '/srv/target/tls.key'), write)
})

await t.test(
  'where no mode denies the process anything, an EACCES is a security module’s',
  { skip: isRoot ? false : 'needs root' },
  async (t) => {
    for (const path of ['/srv/target/tls.key', '/srv/.holdfast-0123456789abcdef.lock'])
      t.match(say('open', path), /EACCES; .*a security module does.*\(SELinux\).*apparmor"$/)
  },
)

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
