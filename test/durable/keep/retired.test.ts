/** `retire: whenUnused`: old content stays for the processes that use it, and goes once none does. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Descriptor, FileSystem } from '../../../src/durable/file-system.js'
import { setHold } from '../../../src/durable/operator/hold.js'
import { readPublication } from '../../../src/durable/index.js'
import { publish } from '../../../src/durable/publish/publish.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import type { PublicationOptions } from '../../../src/durable/types.js'
import { failure, intercepted } from '../intercepted.js'
import { kept, scratchWith } from '../scratch.js'
import { isKind } from '../../crash/judge/names.js'

/** On test machines, process 1 may be another user's: ignore its descriptors. */
class Here extends NodeFileSystem {
  /** It stands still: a machine with much to do must not come between a time and its limit. */
  clock = Date.now()
  override now(): number {
    return this.clock
  }

  override async userOf(parent: Descriptor, name: string): Promise<string | undefined> {
    const user = await super.userOf(parent, name)
    return user?.startsWith('process 1 may not be looked at') ? undefined : user
  }
}

function scene(t: Test) {
  const [root, target] = scratchWith(t, 'certs')
  const fs = new Here()
  const lines: string[] = []
  const add = (_: object, message: string): void => void lines.push(message)
  const log = {
    debug: add,
    info: add,
    warn: (_: object, message: string) => void lines.push(`WARN ${message}`),
    error: add,
  }
  const replaceBy = async (by: FileSystem, text: string, options: PublicationOptions = {}): Promise<unknown> => {
    const files = { 'tls.crt': text, 'sub/tls.key': text }
    const request = { target, files, retireTimeout: 3_600_000, log, ...options }
    const [outcome] = await publish([directoryPublication(by, request)])
    if (outcome && 'error' in outcome) throw outcome.error
    return outcome
  }
  const replace = (text: string, options?: PublicationOptions): Promise<unknown> => replaceBy(fs, text, options)
  const record = (): string => {
    const name = readdirSync(root).find(isKind('record')) ?? ''
    return readFileSync(join(root, name), 'utf8')
  }
  return { root, target, fs, lines, replace, replaceBy, record }
}

/** A shell that works in a directory, and runs the lines that it gets. */
function worker(t: Test, directory: string) {
  const child = spawn('sh', [], { cwd: directory, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  t.teardown(() => child.kill('SIGKILL'))
  const answers = createInterface(child.stdout)[Symbol.asyncIterator]()
  const ask = async (command: string): Promise<unknown> => {
    child.stdin.write(`${command}; echo\n`)
    return (await answers.next()).value
  }
  const end = async (): Promise<void> => {
    child.stdin.end()
    await ended
  }
  return { ask, end, pid: child.pid ?? -1 }
}

await t.test(
  'a process that works in old content finds all of it by any path; the next run after its end removes it',
  async (t) => {
    const { root, target, lines, replace } = scene(t)
    await replace('1')
    const reader = worker(t, join(target, 'sub'))
    t.equal(await reader.ask('cat tls.key'), '1')
    t.match(await replace('2'), { outcome: 'replaced' })
    t.equal(readFileSync(join(target, 'tls.crt'), 'utf8'), '2')
    t.equal(await reader.ask('cat tls.key ../tls.crt'), '11', 'old content, as a whole')
    t.match(
      lines.at(-1),
      new RegExp(
        `stays until nobody uses it, or until .*: process ${reader.pid} \\(sh\\) has it as its working directory`,
      ),
    )
    t.strictSame(kept(root), ['lock', 'record', 'staging'])
    t.match(await readPublication(target), { retired: true, settled: true })

    t.match(await replace('2'), { outcome: 'unchanged' })
    t.equal(await reader.ask('cat tls.key'), '1', 'another run keeps it')
    await replace('3')
    t.match(await replace('3'), { outcome: 'unchanged' })
    t.equal(await reader.ask('cat tls.key'), '1', 'another publication, too: its record tells of it')
    t.strictSame(kept(root), ['lock', 'record', 'staging'], 'what nobody used went at once')
    await reader.end()
    t.match(await replace('3'), { outcome: 'unchanged' })
    t.strictSame(kept(root), ['lock', 'record'])
    t.notMatch(await readPublication(target), { retired: true })
  },
)

await t.test('a descriptor of a file, by its inode: another name of it may be open', async (t) => {
  const { root, target, replace } = scene(t)
  await replace('1')
  const reader = worker(t, '/')
  linkSync(join(target, 'tls.crt'), join(root, 'linked'))
  await reader.ask(`exec 3< ${root}/linked`)
  await replace('2')
  t.strictSame(kept(root), ['lock', 'record', 'staging'])
  await reader.ask('exec 3<&-')
  await replace('2')
  t.strictSame(kept(root), ['lock', 'record'])
})

await t.test(
  'after retireTimeout old content goes in spite of its user, with a warning that names the process',
  async (t) => {
    const { root, target, fs, lines, replace } = scene(t)
    await replace('1')
    const reader = worker(t, target)
    await replace('2', { retireTimeout: 60_000 })
    fs.clock += 59_999
    await replace('2')
    t.strictSame(kept(root), ['lock', 'record', 'staging'])
    fs.clock += 1
    await replace('2')
    t.strictSame(kept(root), ['lock', 'record'])
    t.match(
      lines.at(-1),
      new RegExp(`^WARN the old content of .* goes after retireTimeout, though it is in use: process ${reader.pid} `),
    )
  },
)

await t.test('a hold keeps it, and carries it on; a version that does not know it refuses the record', async (t) => {
  const { root, target, fs, replace, record } = scene(t)
  await replace('1')
  const reader = worker(t, target)
  await replace('2')
  await setHold(fs, target, { reason: '', since: 0, until: null }, {})
  await reader.end()
  await replace('2')
  t.strictSame(kept(root), ['lock', 'record', 'staging'], 'nothing is removed beside a held path')
  t.match(record(), '"requires":["hold","retired"]')
  await setHold(fs, target, undefined, {})
  t.match(record(), '"requires":["retired"]')
  await replace('2')
  t.strictSame(kept(root), ['lock', 'record'])
})

await t.test("what another program puts into it is not this program's to remove", async (t) => {
  const { root, target, replace } = scene(t)
  await replace('1')
  const reader = worker(t, target)
  await replace('2')
  await reader.ask('echo precious > added')
  await replace('3')
  await reader.end()
  await replace('3')
  const [quarantined] = readdirSync(root).filter((name) => name.endsWith('.foreign'))
  t.equal(readFileSync(join(root, quarantined ?? '', 'added'), 'utf8'), 'precious\n')
})

await t.test('where the commit was cut short, it stays until a later publication is durable', async (t) => {
  const { root, target, fs, replace } = scene(t)
  await replace('1')
  const reader = worker(t, target)
  const failing = intercepted((call, _, index) => {
    // The second barrier: the new content is visible, perhaps not durably.
    if (call === 'sync' && swapped) throw failure('EIO', 'fsync')
    if (call === 'rename') swapped = index > 0
  }, fs)
  let swapped = false
  const request = { target, files: { 'tls.crt': '2' }, retireTimeout: 3_600_000 }
  const [outcome] = await publish([directoryPublication(failing.fs, request)])
  t.match(outcome, { error: { published: true } })
  await reader.end()
  // With or without a user: a power cut may bring it back.
  t.match(await readPublication(target), { retired: true, settled: false })
  const before = readdirSync(root).filter((name) => /-[0-9a-f]{16}$/.test(name) && name.startsWith('.holdfast-'))
  let atExchange: string[] = []
  const watching = intercepted((call) => {
    if (call === 'rename') atExchange = readdirSync(root)
  }, fs)
  await publish([directoryPublication(watching.fs, request)])
  t.ok(before.length === 1 && atExchange.includes(before[0] ?? ''), 'it was there when the next exchange came')
  t.strictSame(kept(root), ['lock', 'record'], 'and went when that was durable')
})

await t.test('links in it are not followed, and names may be any bytes', async (t) => {
  const { root, target, replace } = scene(t)
  const elsewhere = join(root, 'elsewhere')
  mkdirSync(elsewhere)
  writeFileSync(join(elsewhere, 'file'), '')
  const other = worker(t, '/')
  await other.ask(`exec 3< ${elsewhere}/file`)
  mkdirSync(target)
  symlinkSync(elsewhere, join(target, 'link'))
  symlinkSync('.', join(target, 'loop'))
  await replace('1')
  t.strictSame(kept(root), ['lock', 'record'], 'what a link leads to is not in it')
  writeFileSync(Buffer.concat([Buffer.from(`${target}/`), Buffer.of(0xff)]), '')
  await replace('2')
  t.strictSame(kept(root), ['lock', 'record'])
  await other.end()
})

await t.test(
  'where the look for users fails, it counts as in use, and the publication is as durable as without',
  async (t) => {
    const { root, target, fs, lines, replace, replaceBy } = scene(t)
    let swapped = false
    const blind = intercepted((call) => {
      if (call === 'userOf') throw failure('EIO', 'scandir')
    }, fs).fs
    await replace('1')
    t.match(await replaceBy(blind, '2'), { outcome: 'replaced' })
    t.match(lines.at(-1), /stays until nobody uses it, or until .*: it cannot be looked at: /)
    t.match(await replaceBy(blind, '2'), { outcome: 'unchanged' })
    t.strictSame(kept(root), ['lock', 'record', 'staging'])
    const failing = intercepted((call, _, index) => {
      if (call === 'sync' && swapped) throw failure('EIO', 'fsync')
      if (call === 'rename') swapped = index > 0
    }, fs).fs
    await t.rejects(replaceBy(failing, '3'), { message: /fsync/, published: true })
    t.match(await replaceBy(blind, '3'), { outcome: 'replaced' }, 'the one that clears the doubt')
    t.equal(readFileSync(join(target, 'tls.crt'), 'utf8'), '3')
    fs.clock += 7_200_000
    t.match(await replaceBy(blind, '3'), { outcome: 'unchanged' })
    t.strictSame(kept(root), ['lock', 'record'], 'after its time it goes')
  },
)

await t.test('the removal of old content keeps a file that another program adds meanwhile', async (t) => {
  const { root, target, fs, replace, replaceBy } = scene(t)
  await replace('1')
  const reader = worker(t, target)
  await replace('2')
  await reader.end()
  const [name = ''] = readdirSync(root).filter(
    (entry) => /-[0-9a-f]{16}$/.test(entry) && entry.startsWith('.holdfast-'),
  )
  const late = intercepted((call) => {
    if (call === 'userOf') writeFileSync(join(root, name, 'added'), 'precious')
  }, fs).fs
  t.match(await replaceBy(late, '2'), { outcome: 'unchanged' })
  t.equal(readFileSync(join(root, `${name}.foreign`, 'added'), 'utf8'), 'precious')
  t.strictSame(readdirSync(join(root, `${name}.foreign`)), ['added'], 'and only that')
})

await t.test('what could not be removed is named by the next record, too', async (t) => {
  const { root, target, fs, replace, replaceBy, record } = scene(t)
  await replace('1')
  const reader = worker(t, target)
  await replace('2')
  await reader.end()
  const [name = ''] = readdirSync(root).filter(
    (entry) => /-[0-9a-f]{16}$/.test(entry) && entry.startsWith('.holdfast-'),
  )
  const busy = intercepted((call, [, entry]) => {
    if (call === 'removeDirectory' && entry === name) throw failure('EBUSY', 'rmdir')
  }, fs).fs
  await replaceBy(busy, '3')
  t.match(record(), `"retired":[{"name":"${name}"`)
  writeFileSync(join(root, name, 'added'), 'precious')
  await replace('3')
  t.equal(readFileSync(join(root, `${name}.foreign`, 'added'), 'utf8'), 'precious')
})

await t.test("without a user, old content goes at once; the library's default does not retire", async (t) => {
  const { root, target, replace } = scene(t)
  mkdirSync(target)
  writeFileSync(join(target, 'tls.crt'), 'foreign')
  await replace('1')
  t.strictSame(kept(root), ['lock', 'record'])
  const reader = worker(t, target)
  await replace('2', { retireTimeout: undefined })
  t.strictSame(kept(root), ['lock', 'record'])
  await reader.end()
})
