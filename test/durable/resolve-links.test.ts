/** Where a path leads through symbolic links: each of them is found, and the search for it ends. */
import { mkdirSync, readFileSync, readlinkSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Attributes, FileSystem } from '../../src/durable/file-system.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { resolve, resolveLinks } from '../../src/durable/path/resolve.js'
import { Scope } from '../../src/durable/path/scope.js'
import { codeOf } from '../../src/errors.js'
import { failure, intercepted } from './intercepted.js'
import { scratch } from './scratch.js'

function scopeOn(t: Test, by: FileSystem = intercepted(() => undefined).fs): Scope {
  const scope = new Scope(by)
  t.teardown(() => scope.closeAll())
  return scope
}

await t.test(
  'the search for a parent ends with any links: it makes no call more often than there are parts',
  async (t) => {
    const root = realpathSync(scratch(t))
    mkdirSync(join(root, 'real/deep'), { recursive: true })
    symlinkSync('loop', join(root, 'loop'))
    symlinkSync('real', join(root, 'link'))
    symlinkSync('../link/./deep/../deep', join(root, 'real/up'))
    const parentOf = async (path: string): Promise<string | undefined> => {
      const calls = new Map<string, number>()
      const { fs } = intercepted((call) => {
        calls.set(call, (calls.get(call) ?? 0) + 1)
        if ((calls.get(call) ?? 0) > 500) throw failure('ETIMEDOUT', call)
      })
      try {
        const { anchor, missing } = await resolve(scopeOn(t, fs), join(root, path))
        return [readlinkSync(`/proc/self/fd/${anchor}`).slice(root.length), ...missing].join('/')
      } catch (error) {
        return codeOf(error)
      }
    }
    t.equal(await parentOf('loop/x'), 'ELOOP')
    t.equal(await parentOf('loop/none/x'), 'ELOOP', 'above a part that is missing')
    t.equal(await parentOf('real/none/x'), '/real/none')
    t.equal(await parentOf('link/x'), '/real')
    t.equal(await parentOf('link/none/x'), '/real/none')
    t.equal(await parentOf('link/up/x'), '/real/deep')
  },
)

await t.test('a path through links in its last part: the place of each, and what the last one leads to', async (t) => {
  const root = realpathSync(scratch(t))
  for (const path of ['a', 'b']) mkdirSync(join(root, path))
  writeFileSync(join(root, 'b/file'), 'content')
  symlinkSync('../b/second', join(root, 'a/first'))
  symlinkSync(join(root, 'b/file'), join(root, 'b/second'))
  symlinkSync('none/deep', join(root, 'a/dangling'))
  const led = async (path: string, follow?: boolean): Promise<[string[], string | undefined]> => {
    const { places, found } = await resolveLinks(scopeOn(t), join(root, path), follow)
    return [places.map(({ realParent, name }) => `${realParent}/${name}`.slice(root.length + 1)), found?.type]
  }
  t.strictSame(await led('b/file'), [['b/file'], 'file'])
  t.strictSame(await led('a/first'), [['a/first', 'b/second', 'b/file'], 'file'])
  t.strictSame(await led('a/first', false), [['a/first'], 'symlink'], 'who does not follow is told of the link')
  t.strictSame(await led('b', false), [['b'], 'directory'])
  t.strictSame(await led('a/dangling'), [['a/dangling', 'a/none/deep'], undefined])
  t.strictSame(await led('b/none'), [['b/none'], undefined])
})

await t.test('resolveLinks answers the link itself beyond the kernel’s limit of links', async (t) => {
  const root = realpathSync(scratch(t))
  writeFileSync(join(root, '0'), '')
  for (let index = 1; index <= 41; index++) symlinkSync(`${index - 1}`, join(root, `${index}`))
  symlinkSync('loop', join(root, 'loop'))
  /** It fails where it does not end. */
  const scope = (): Scope => {
    let read = 0
    return scopeOn(
      t,
      intercepted((call) => {
        if (call === 'readLink' && ++read > 100) throw failure('ETIMEDOUT', 'readlink')
      }).fs,
    )
  }
  const led = async (path: string): Promise<[number, string | undefined]> => {
    const { places, found } = await resolveLinks(scope(), join(root, path))
    return [places.length, found?.type]
  }
  t.equal(readFileSync(join(root, '40'), 'utf8'), '', 'the kernel follows forty')
  t.strictSame(await led('40'), [41, 'file'])
  t.strictSame(await led('41'), [41, 'symlink'])
  t.strictSame(await led('loop'), [41, 'symlink'])
})

await t.test('a link whose directory went while it was looked at is not followed', async (t) => {
  const root = realpathSync(scratch(t))
  mkdirSync(join(root, 'real'))
  symlinkSync('real', join(root, 'link'))
  class Going extends NodeFileSystem {
    #isGone = false
    override async lookPath(path: string): Promise<Attributes | undefined> {
      if (this.#isGone && path === root) return undefined
      this.#isGone = path === join(root, 'link')
      return super.lookPath(path)
    }
  }
  const led = resolve(scopeOn(t, new Going()), join(root, 'link/x'))
  t.equal(await led.then(() => 'followed', codeOf), 'ELOOP')
})
