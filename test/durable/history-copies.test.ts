/** The copy of an earlier content: like the old one, and for its owner alone at each instant. */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import t from 'tap'
import { StagedEntries } from '../../src/durable/path/barrier.js'
import { stageGeneration } from '../../src/durable/keep/history.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { publish } from '../../src/durable/publish/publish.js'
import { directoryPublication } from '../../src/durable/publish/replace.js'
import { Scope } from '../../src/durable/path/scope.js'
import { readTree } from '../../src/durable/path/tree.js'
import type { FileSystem } from '../../src/durable/file-system.js'
import { isKind } from '../crash/judge/names.js'
import { forever } from './history-scene.js'
import { failing, intercepted } from './intercepted.js'
import { contents, kept, modeOf, scratch, scratchWith } from './scratch.js'

const isRoot = process.getuid?.() === 0
const hasLists = spawnSync('setfacl', ['--version']).status === 0
const real = new NodeFileSystem()

const replace = async (target: string, text: string, fs: FileSystem = real) => {
  const files = { top: text, 'a/b/key': text, 'a/c': text }
  const [outcome] = await publish([
    directoryPublication(fs, { target, files, attributes: 'keep', history: forever(1) }),
  ])
  return outcome && 'error' in outcome ? outcome.error.message : outcome?.outcome
}

const copiesIn = (root: string) =>
  readdirSync(root)
    .filter(isKind('generation'))
    .map((name) => join(root, name))

/** Path, mode and owner of each entry. */
function entriesOf(directory: string): string[] {
  const paths = ['', ...readdirSync(directory, { recursive: true, encoding: 'utf8' })]
  return paths.sort().map((path) => {
    const { mode, uid, gid } = lstatSync(join(directory, path))
    return `${path} ${mode.toString(8)} ${uid}:${gid}`
  })
}

await t.test('a copy has the old modes and owners, and no other user can ever reach it', async (t) => {
  const [root, target] = scratchWith(t, 'certs')
  await replace(target, 'old')
  for (const [path, mode] of Object.entries({ '': 0o755, a: 0o711, 'a/b': 0o750, 'a/b/key': 0o440, 'a/c': 0o604 })) {
    chmodSync(join(target, path), mode)
    if (isRoot) chownSync(join(target, path), 1000 + mode, 2000 + mode)
  }
  const old = entriesOf(target)
  const modes = new Set<string>()
  const synced = new Set<string>()
  const { fs } = intercepted((call, args) => {
    for (const copy of copiesIn(root)) {
      modes.add(modeOf(copy))
      for (const name of readdirSync(copy, { recursive: true, encoding: 'utf8' }))
        if (statSync(join(copy, name)).isDirectory()) modes.add(`${name} ${modeOf(join(copy, name))}`)
    }
    if (call === 'rename') for (const path of synced) exchanged.add(path)
    if (call === 'sync') for (const one of args[0] as number[]) synced.add(readlinkSync(`/proc/self/fd/${one}`))
  })
  const exchanged = new Set<string>()
  t.equal(await replace(target, 'new', fs), 'replaced')
  const [copy = ''] = copiesIn(root)
  const all = ['certs', 'certs/a', 'certs/a/b', 'certs/a/b/key', 'certs/a/c', 'certs/top']
  t.strictSame(
    ['', ...all].filter((path) => !exchanged.has(join(copy, path))),
    [],
    'all of it is synced before the exchange',
  )
  const directories = { certs: '755', 'certs/a': '711', 'certs/a/b': '750' }
  const usual = Object.entries(directories).flatMap(([name, mode]) => [`${name} 700`, `${name} ${mode}`])
  t.strictSame([...modes].sort(), ['700', ...usual].sort())
  t.strictSame(entriesOf(join(copy, basename(target))), old)
  t.strictSame(contents(copy), { 'certs/top': 'old', 'certs/a/b/key': 'old', 'certs/a/c': 'old' })
})

await t.test('what cannot be copied keeps the old content in its place, and nothing beside it', async (t) => {
  const [root, target] = scratchWith(t, 'certs')
  await replace(target, 'old')
  const { fs } = failing('copy', 'EIO', 'copy_file_range')
  t.match(await replace(target, 'new', fs), /copy_file_range .*EIO/)
  t.strictSame(contents(target), { top: 'old', 'a/b/key': 'old', 'a/c': 'old' })
  t.strictSame(kept(root), ['lock', 'record'])
})

await t.test(
  'an inherited default list opens the copy to no other user',
  { skip: !hasLists && 'needs setfacl' },
  async (t) => {
    const [root, target] = scratchWith(t, 'certs')
    await replace(target, 'old')
    spawnSync('setfacl', ['-d', '-m', 'u:1234:rwx', root])
    t.equal(await replace(target, 'new'), 'replaced')
    const [copy = ''] = copiesIn(root)
    const opened = await real.openPath(copy)
    const lists = await real.extendedAttributes(opened).finally(() => real.close(opened))
    t.strictSame([...(lists ?? []).keys()], [])
    t.equal(modeOf(copy), '700')
  },
)

// Another user cannot enter a directory made under this umask, by holdfast or by mkdir(1).
const umaskNeeds = isRoot ? false : 'needs root, which enters a directory without its execute permission'

await t.test('the owner can reach the copy under any umask', { skip: umaskNeeds }, async (t) => {
  const [root, target] = scratchWith(t, 'certs')
  await replace(target, 'old')
  const modes: string[] = []
  const { fs } = intercepted((call, [parent, name]) => {
    if (call === 'createDirectory' && name === 'certs') modes.push(modeOf(`/proc/self/fd/${String(parent)}`))
  })
  const before = process.umask(0o100)
  try {
    t.equal(await replace(target, 'new', fs), 'replaced')
  } finally {
    process.umask(before)
  }
  const [copy = ''] = copiesIn(root)
  t.strictSame([modeOf(copy), modes], ['700', ['700']], 'before anything is made in it')
})

await t.test('copies are complete when the publication hands them over to the barrier', async (t) => {
  const root = scratch(t)
  mkdirSync(join(root, 'old/sub'), { recursive: true })
  writeFileSync(join(root, 'old/sub/key'), 'key')
  symlinkSync('key', join(root, 'old/sub/link'))
  for (const [path, mode] of Object.entries({ '': 0o711, sub: 0o705, 'sub/key': 0o604 }))
    chmodSync(join(root, 'old', path), mode)
  const { uid } = statSync(root)
  const owner = isRoot ? 1234 : uid
  for (const path of ['sub', 'sub/key']) if (isRoot) chownSync(join(root, 'old', path), owner, owner)
  const seen: string[] = []
  const see = (call: string, descriptor: number): void => {
    const path = `/proc/self/fd/${descriptor}`
    const status = statSync(path)
    const holds = status.isFile() ? `${status.size} bytes` : readdirSync(path).sort().join()
    seen.push(`${call} ${basename(readlinkSync(path))} ${modeOf(path)} of ${status.uid}: ${holds}`)
  }
  class Handed extends StagedEntries<string> {
    override add(...args: Parameters<StagedEntries<string>['add']>): void {
      see('hands over', args[1])
      super.add(...args)
    }
    override async addDirectory(...args: Parameters<StagedEntries<string>['addDirectory']>): Promise<void> {
      see('hands over', args[1])
      return super.addDirectory(...args)
    }
  }
  const { fs } = intercepted((call, [, to]) => {
    if (call === 'copy') see('writes', to as number)
  })
  const scope = new Scope(fs)
  const parent = await scope.keep(fs.openPath(root))
  const opened = await scope.keep(fs.openPath(join(root, 'old')))
  const old = { root: opened, tree: await readTree(fs, opened, false), name: 'certs' }
  const rest = await stageGeneration(scope, parent, 'copy', old, new Handed(fs), 'owner')
  for (const one of rest) see('answers', one)
  t.strictSame(seen, [
    `writes key 600 of ${uid}: 0 bytes`,
    `hands over key 604 of ${owner}: 3 bytes`,
    `hands over sub 705 of ${owner}: key,link`,
    `answers copy 700 of ${uid}: certs`,
    `answers certs 711 of ${uid}: sub`,
  ])
  t.equal(readlinkSync(join(root, 'copy/certs/sub/link')), 'key')
  await scope.closeAll()
})
