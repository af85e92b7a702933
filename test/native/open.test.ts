import { spawnSync } from 'node:child_process'
import { closeSync, constants, mkdirSync, mkdtempSync, openSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { directoryFlags, openOnSameMount } from '../../native/index.js'

const directory = mkdtempSync(join(tmpdir(), 'holdfast-open-'))
t.teardown(() => rmSync(directory, { recursive: true }))
mkdirSync(join(directory, 'sub'))
writeFileSync(join(directory, 'sub', 'file'), '')
symlinkSync('sub', join(directory, 'link'))
const fd = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY)
t.teardown(() => closeSync(fd))

await t.test('what is on the same mount is opened, and a link is not followed', async (t) => {
  closeSync(await openOnSameMount(fd, 'sub', directoryFlags))
  closeSync(await openOnSameMount(fd, 'sub/file', constants.O_RDONLY))
  await t.rejects(openOnSameMount(fd, 'link', directoryFlags), { code: 'ELOOP', syscall: 'openat2' })
  await t.rejects(openOnSameMount(fd, 'missing', directoryFlags), { code: 'ENOENT' })
})

await t.test('what is on another mount is EXDEV: /proc below the root', async (t) => {
  const root = openSync('/', constants.O_RDONLY | constants.O_DIRECTORY)
  t.teardown(() => closeSync(root))
  t.equal(spawnSync('mountpoint', ['-q', '/proc']).status, 0, '/proc is a mount here')
  await t.rejects(openOnSameMount(root, 'proc', directoryFlags), { code: 'EXDEV', syscall: 'openat2', path: 'proc' })
})
