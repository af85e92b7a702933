/** Adoption: seven checks, each of which keeps everything as it is until it has passed. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { examineAdoption, takeOver } from '../../../src/durable/adopt/adoption.js'
import type { Adopting } from '../../../src/durable/types.js'
import type { Free } from '../../../src/durable/file-system.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { completeHook } from '../../../src/durable/record/record-files.js'
import { replaceFile } from '../../../src/durable/publish/replace.js'
import { Alone, before, files, order, scene } from '../adoption-scene.js'
import { failing } from '../intercepted.js'
import { contents } from '../scratch.js'

const isRoot = process.getuid?.() === 0
const hasLists = spawnSync('setfacl', ['--version']).status === 0

await t.test('nothing, an empty directory and what holdfast published are no adoption', async (t) => {
  const { target, fs, take, examine, pendingHooks } = scene(t, {})
  chmodSync(target, 0o777)
  t.match(await take(), { outcome: 'replaced' })
  chmodSync(target, 0o777)
  writeFileSync(join(target, 'more'), 'drift')
  const { outcome, digest } = await take()
  t.equal(outcome, 'replaced')
  t.ok(await completeHook(fs, target, digest, 'reload'))
  t.match(await take({}, before), { outcome: 'replaced' })
  t.strictSame(await pendingHooks(), ['reload'], 'no consumer knows what holdfast itself has changed')
  rmSync(target, { recursive: true })
  t.match(await examine(), { own: true })
  const other = scene(t)
  rmSync(other.target, { recursive: true })
  const { open } = await other.examine()
  t.strictSame(
    open.map(({ verdict }) => verdict),
    order.map(() => 'pending'),
  )
  t.match(open[0], { message: /does not exist/ })
  t.match(await other.take(), { outcome: 'created' })
  t.strictSame(await other.pendingHooks(), ['reload'])
})

await t.test('an adoption takes over files that the new content lacks only with replace', async (t) => {
  const { target, root, refuses, take, pendingHooks } = scene(t, { ...files, 'ca.crt': 'mine' })
  await refuses('content', 'refused', /does not have \(ca\.crt\)/)
  t.match(await take({ adopt: takeOver({ replace: true }) }), { outcome: 'replaced' })
  t.strictSame(contents(target), files)
  t.strictSame(await pendingHooks(), ['reload'], 'no consumer knows what has changed')
  const [copy = ''] = readdirSync(root).filter((name) => name.includes('.0-'))
  t.equal(readFileSync(join(root, copy, 'certs/ca.crt'), 'utf8'), 'mine')
})

await t.test('a process that has a file of it open for writing is waited for; a reader is not', async (t) => {
  const { target, refuses, take, examine } = scene(t, before, new NodeFileSystem())
  const child = spawn('sh', [
    '-c',
    `exec 3<'${target}/tls.key'; read x; exec 4>>'${target}/tls.key'; echo; read x; exec 4>&-; echo; read x`,
  ])
  t.teardown(() => child.kill('SIGKILL'))
  t.same((await examine()).open, [])
  child.stdin.write('\n')
  await once(child.stdout, 'data')
  await refuses('noOtherWriter', 'pending', /process \d+ \(sh\) has \S*tls\.key as an open file, for writing/)
  child.stdin.write('\n')
  await once(child.stdout, 'data')
  t.match(await take(), { outcome: 'replaced' })
})

await t.test("another program's staging is waited for; what holdfast publishes inside is refused", async (t) => {
  const { root, target, refuses, take } = scene(t)
  const staging = join(root, '../staging/cert-sync/secrets/certs')
  mkdirSync(staging, { recursive: true })
  await refuses('noOtherWriter', 'pending', /library-go's cert-sync stages/)
  rmSync(staging, { recursive: true })
  const inner = join(target, 'inner/pod.yaml')
  await replaceFile(inner, 'x', { parents: true })
  await t.rejects(take(), { reason: 'TargetUnfit', message: /inner\/pod\.yaml, which holdfast publishes by itself/ })
  rmSync(join(target, 'inner'), { recursive: true })
  const temporary = join(target, 'tls.crt.tmp123456')
  writeFileSync(temporary, '')
  await refuses('noOtherWriter', 'pending', /somebody is writing tls\.crt\.tmp123456/)
  rmSync(temporary)
  t.match(await take(), { outcome: 'replaced' })
})

await t.test('an adoption waits for a file that another program writes during the checks', async (t) => {
  const { target, publishBy, take } = scene(t)
  class Beside extends Alone {
    override readonly free = async (): Promise<Free> => {
      writeFileSync(join(target, 'tls.crt'), 'newer')
      return Promise.resolve({ bytes: 1 << 30, inodes: undefined, blockSize: 4096 })
    }
  }
  await t.rejects(publishBy(new Beside()), {
    reason: 'AdoptionPending',
    message: /: noOtherWriter: its content changed/,
  })
  t.strictSame(contents(target), { ...before, 'tls.crt': 'newer' })
  t.match(await take(), { outcome: 'replaced' })
})

await t.test('what cannot be exchanged is refused', async (t) => {
  const { target, root, take, examine } = scene(t)
  rmSync(target, { recursive: true })
  mkdirSync(`${target}-real`)
  symlinkSync(`${target}-real`, target)
  t.match((await examine()).open, [
    { check: 'realDirectory', verdict: 'refused', message: /symbolic link/ },
    { check: 'safeOwner', verdict: 'pending', message: /not looked at: .*symbolic link/ },
    { check: 'space', verdict: 'pending' },
    { check: 'content', verdict: 'pending' },
  ])
  await t.rejects(take(), { reason: 'AdoptionRefused', message: /realDirectory: .* is a symbolic link/ })
  t.ok(existsSync(join(root, 'certs-real')))
})

for (const [code, verdict, message] of [
  ['EINVAL', 'refused', /cannot exchange two names in one step \(RENAME_EXCHANGE: EINVAL\)/],
  ['EROFS', 'pending', /could not exchange .*: EROFS/],
] as const) {
  await t.test(`a file system that answers ${code}`, async (t) => {
    const { refuses } = scene(t)
    const { fs } = failing('rename', code, 'renameat2', new Alone())
    await refuses('fileSystem', verdict, message, fs)
  })
}

await t.test('who else may write there', { skip: !isRoot && 'needs root' }, async (t) => {
  const { target, root, refuses, take } = scene(t)
  const file = join(target, 'tls.key')
  chmodSync(file, 0o666)
  await refuses('safeOwner', 'refused', /everybody may write to \S+tls\.key$/)
  chmodSync(file, 0o660)
  chownSync(file, 0, 1234)
  await refuses('safeOwner', 'refused', /group 1234 may write to/)
  chownSync(file, 1234, 0)
  await refuses('safeOwner', 'refused', /user 1234 owns/)
  chownSync(file, 0, 0)
  chownSync(root, 1234, 0)
  await refuses('safeOwner', 'refused', /user 1234 owns \S+secrets,/)
  chownSync(root, 0, 0)
  t.match(await take(), { outcome: 'replaced' })
})

await t.test('whom an ACL lets write there', { skip: !hasLists && 'needs setfacl' }, async (t) => {
  const { target, root, refuses, take } = scene(t)
  const setfacl = (...args: string[]): boolean => spawnSync('setfacl', args).status === 0
  const file = join(target, 'tls.key')
  t.ok(setfacl('-m', 'u:1234:r', file))
  for (const [path, who, message] of [
    [file, 'u:1234', /an ACL lets user 1234 write to \S+tls\.key$/],
    [target, 'g:1234', /an ACL lets group 1234 write to \S+certs$/],
    [root, 'u:1234', /an ACL lets user 1234 write to \S+secrets$/],
  ] as const) {
    t.ok(setfacl('-m', `${who}:rwx`, path))
    await refuses('safeOwner', 'refused', message)
    t.ok(setfacl('-x', who, path))
  }
  t.ok(setfacl('-d', '-m', 'u:1234:rwx', target))
  await refuses('safeOwner', 'refused', /the default ACL lets user 1234 write to what is made in \S+certs$/)
  t.ok(setfacl('-k', target))
  t.match(await take(), { outcome: 'replaced' })
})

await t.test("another program's link ..data is no form of holdfast's", async (t) => {
  const { target, refuses } = scene(t)
  symlinkSync('..2026', join(target, '..data'))
  const how = { replace: true }
  await refuses(
    'realDirectory',
    'refused',
    /it holds a link \.\.data, which its readers may go through/,
    undefined,
    how,
  )
})

await t.test('a second copy needs its space', async (t) => {
  const { refuses } = scene(t)
  class Full extends Alone {
    override readonly free = (): Promise<Free> => Promise.resolve({ bytes: 20_000, inodes: undefined, blockSize: 4096 })
  }
  // Two directories and four files, a block each.
  await refuses('space', 'pending', /^20000 bytes are free, 24576 are needed$/, new Full())
  class Few extends Alone {
    override readonly free = (): Promise<Free> => Promise.resolve({ bytes: 24_576, inodes: 5, blockSize: 4096 })
  }
  await refuses('space', 'pending', /^5 inodes are free, 6 are needed$/, new Few())
})

await t.test('keys that do not belong to their certificates', async (t) => {
  const { refuses, take } = scene(t)
  const wrong = (text: string): Adopting => ({
    replace: false,
    keyPairs: async ({ paths, read }) => {
      const found = await Promise.all(paths.map(async (path) => Buffer.from(await read(path)).toString()))
      return found.includes(text) ? `${text} does not fit` : undefined
    },
  })
  await refuses('content', 'refused', /^the new content: new does not fit$/, undefined, wrong('new'))
  await refuses('content', 'pending', /^old does not fit: somebody may be between/, undefined, wrong('old'))
  t.match(await take({ adopt: takeOver({ ...wrong('old'), replace: true }) }), { outcome: 'replaced' })
})

await t.test('an adoption reads no file larger than a key, and names a key that is open to all users', async (t) => {
  const { target, fs, take, requestFor } = scene(t)
  writeFileSync(join(target, 'large.key'), '')
  truncateSync(join(target, 'large.key'), 4 * 1024 * 1024 + 1)
  chmodSync(join(target, 'tls.key'), 0o644)
  const paths: string[] = []
  const adopt: Adopting = { replace: false, keyPairs: (found) => Promise.resolve(void paths.push(...found.paths)) }
  const asked = { ...files, 'large.key': 'small' }
  const { checks } = await examineAdoption(fs, requestFor({ attributes: 'keep' }, asked), adopt)
  t.match(checks[4], {
    verdict: 'passed',
    message: /everybody may read large\.key and tls\.key, which attributes: keep leaves so$/,
  })
  t.strictSame(paths, ['large.key', 'tls.crt', 'tls.key', 'tls.crt', 'tls.key'])
  t.match(await take({ adopt: takeOver(adopt) }, asked), { outcome: 'replaced' })
})
