import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { contents, scratch } from '../durable/scratch.js'
import { executable } from '../project.js'

/*
 * The system calls of `holdfast replace`, as strace sees them: the algorithm and nothing more. Node's own start, and
 * the fsync of descriptors 1 and 2 with which koffi's binary ends every process, are not part of it.
 */

const hasStrace = spawnSync('strace', ['-V']).status === 0

const traced = [
  'openat,openat2,mkdir,mkdirat,renameat2,rename,unlink,unlinkat,rmdir,symlink,link,fchmod,chmod,fchown,chown,utimensat,futimesat',
  'fsync,fdatasync,sync,syncfs,sync_file_range,io_submit,io_getevents,write,pwrite64,writev,ftruncate',
].join()

/** Calls that change a file system below the parent, and AIO's, in order, without the random parts of names. */
function changes(parent: string, args: readonly string[]): string[] {
  const log = join(parent, '..', 'trace')
  const command = [process.execPath, executable, ...args]
  execFileSync('strace', ['-f', '-y', '-qq', '-o', log, '-e', `trace=${traced}`, ...command], {
    stdio: 'ignore',
  })
  const unfinished = new Map<string, string>()
  const paths = new Map<string, string>()
  const found: string[] = []
  for (const line of readFileSync(log, 'utf8').split('\n')) {
    const [, pid = '', text = ''] = /^(\d+)\s+(.*)$/.exec(line) ?? []
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(text)
    if (text.endsWith('<unfinished ...>')) {
      unfinished.set(pid, text.replace(/\s*<unfinished \.\.\.>$/, ''))
      continue
    }
    const change = describe(resumed ? `${unfinished.get(pid) ?? ''}${resumed[1] ?? ''}` : text, parent, paths)
    if (change !== undefined) found.push(change)
  }
  return found
}

function describe(call: string, parent: string, paths: Map<string, string>): string | undefined {
  const [, name = '', rest = ''] = /^(\w+)\((.*)$/.exec(call) ?? []
  if (name === 'io_submit') return `io_submit ${/, (\d+), /.exec(rest)?.[1] ?? '?'}`
  if (name === 'io_getevents' || name === 'sync' || name === 'syncfs') return name
  // A name below /proc/self/fd/N is meant inside N, which `-y` shows where N was opened.
  const named = [...rest.matchAll(/"([^"]*)"/g)].map(([, path = '']) =>
    path.replace(/^\/proc\/self\/fd\/(\d+)/, (_, fd: string) => paths.get(fd) ?? '?'),
  )
  const opened = / = (\d+)<([^>]*)>$/.exec(rest)
  if (name.startsWith('openat') && opened) paths.set(opened[1] ?? '', opened[2] ?? '')
  if (name.startsWith('openat') && !/O_CREAT|O_WRONLY|O_RDWR|O_TRUNC/.test(rest)) return undefined
  const behind = [...rest.matchAll(/\d+<([^>]*)>/g)].map(([, path = '']) => path)
  const byName = /^(openat|mkdir|unlink|rmdir|symlink|link|rename$|chmod|chown|utimensat)/.test(name)
  const [subject = ''] = byName ? named : behind
  if (subject !== parent && !subject.startsWith(`${parent}/`)) return undefined
  const shown =
    name === 'renameat2' ? `${named.join(' ')} ${/RENAME_\w+/.exec(rest)?.[0] ?? ''}` : subject.slice(parent.length + 1)
  const hint = rest.includes('SYNC_FILE_RANGE_WAIT_AFTER') ? ' wait' : ''
  return `${name} ${shown}${hint}`
    .replace(/\.holdfast-[0-9a-f]{16}/g, '.holdfast-ID')
    .replace(/ID-[0-9a-f]{16}/g, 'ID-STAGING')
}

/** Directories above one, up to the root of its file system: each publication syncs them. */
function ancestorsOf(directory: string): number {
  const above = dirname(directory)
  return above === directory || statSync(above).dev !== statSync(directory).dev ? 0 : 1 + ancestorsOf(above)
}

await t.test(
  'replace makes the system calls of the algorithm, and nothing more',
  { skip: hasStrace ? false : 'strace is not installed: run by CI' },
  async (t) => {
    const root = scratch(t)
    const parent = join(root, 'parent')
    const source = join(root, 'source')
    mkdirSync(parent)
    mkdirSync(join(source, 'sub'), { recursive: true })
    writeFileSync(join(source, 'tls.crt'), 'old certificate')
    writeFileSync(join(source, 'sub', 'tls.key'), 'old key')
    const args = ['replace', join(parent, 'certs'), '--from', source]
    execFileSync(process.execPath, [executable, ...args])
    writeFileSync(join(source, 'tls.crt'), 'new certificate')
    writeFileSync(join(source, 'sub', 'tls.key'), 'new key')

    const calls = changes(parent, args)
    const firstBarrier = `io_submit ${6 + ancestorsOf(parent)}`
    const barrier1 = calls.indexOf(firstBarrier)
    const swap = calls.indexOf('renameat2 .holdfast-ID-STAGING certs RENAME_EXCHANGE')
    const barrier2 = calls.indexOf('io_submit 1')
    t.ok(barrier1 > 0 && swap > barrier1 && barrier2 > swap, 'barrier, exchange, barrier')
    t.same(
      calls.slice(0, barrier1).sort(),
      [
        'openat .holdfast-ID.lock',
        'mkdir .holdfast-ID-STAGING',
        'mkdir .holdfast-ID-STAGING/sub',
        'openat .holdfast-ID-STAGING/tls.crt',
        'openat .holdfast-ID-STAGING/sub/tls.key',
        'write .holdfast-ID-STAGING/tls.crt',
        'write .holdfast-ID-STAGING/sub/tls.key',
        'openat .holdfast-ID.2',
        'write .holdfast-ID.2',
        'sync_file_range .holdfast-ID-STAGING/tls.crt',
        'sync_file_range .holdfast-ID-STAGING/sub/tls.key',
        'sync_file_range .holdfast-ID.2',
        'sync_file_range .holdfast-ID.2 wait',
      ].sort(),
      'staging, and the write-out of three files; the fsyncs of two files, the record, staging, its subdirectory, the parent and its ancestors',
    )
    t.same(calls.slice(barrier1, barrier2 + 2), [
      firstBarrier,
      'io_getevents',
      'renameat2 .holdfast-ID-STAGING certs RENAME_EXCHANGE',
      'io_submit 1',
      'io_getevents',
    ])
    // strace knows a descriptor by the name of its opening: the old directory was the target then.
    const after = calls.slice(barrier2 + 2).map((call) => call.replace(' certs/', ' .holdfast-ID-STAGING/'))
    const [mutation, committed, ...removals] = after
    t.match(mutation, /^unlink \.holdfast-ID-STAGING\//, 'one removal: the mutation that tells of an aborted journal')
    t.equal(committed, 'write .holdfast-ID.2')
    t.equal(removals.pop(), 'unlink .holdfast-ID.1', 'the old record goes last')
    t.same(
      removals.filter((call) => call !== mutation).sort(),
      [
        'rmdir .holdfast-ID-STAGING',
        'rmdir .holdfast-ID-STAGING/sub',
        'unlink .holdfast-ID-STAGING/tls.crt',
        'unlink .holdfast-ID-STAGING/sub/tls.key',
      ]
        .filter((call) => call !== mutation)
        .sort(),
    )
    t.same(contents(join(parent, 'certs')), { 'tls.crt': 'new certificate', 'sub/tls.key': 'new key' })

    t.same(changes(parent, args), ['openat .holdfast-ID.lock'], 'unchanged opens the lock, and changes nothing')
  },
)
