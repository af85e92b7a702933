import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import t from 'tap'
import { absolutePath } from '../src/absolute-path.js'

const root = mkdtempSync(join(realpathSync(tmpdir()), 'holdfast-path-'))
t.teardown(() => rmSync(root, { recursive: true }))
mkdirSync(join(root, 'real', 'deep'), { recursive: true })
symlinkSync(join(root, 'real', 'deep'), join(root, 'link'))
symlinkSync('nowhere', join(root, 'dangling'))

await t.test('absolutePath follows the text of a path', async (t) => {
  for (const path of ['/', '/a', '/a/', '//a//b/.', '/a/../b', '/..', 'a/b', './a', '../a', '..', '.', 'a/../../b']) {
    t.equal(absolutePath(path, root), resolve(root, path), path)
  }
  t.equal(absolutePath('a'), resolve('a'), 'from the working directory')
  t.equal(absolutePath(`${root}/link/x`), `${root}/link/x`, 'a link alone is no matter of the text')
  t.equal(absolutePath(`${root}/missing/../x`), `${root}/x`)
})

await t.test('.. behind a symbolic link is refused, with its place', async (t) => {
  const refused = [`${root}/link/../x`, `${root}/link/./../x`, `${root}/link//..`, `${root}/dangling/../x`]
  for (const path of refused)
    t.throws(() => absolutePath(path), { name: 'TypeError', message: /(link|dangling)\/\.\./ }, path)
  t.throws(() => absolutePath('link/../x', root), { message: /is a symbolic link/ }, 'a relative one')
  t.equal(absolutePath(`${root}/link/sub/../x`), `${root}/link/x`, 'behind what the link leads to, both agree')
})

await t.test(
  'absolutePath needs no working directory for an absolute path, and says that it has gone for another',
  async (t) => {
    const script = `
    import { absolutePath } from ${JSON.stringify(new URL('../src/absolute-path.js', import.meta.url).href)}
    const outcome = (path) => { try { return absolutePath(path) } catch (error) { return error.name + ' ' + error.message } }
    console.log(JSON.stringify(['/a/../b', 'certs'].map(outcome)))`
    const program = join(root, 'program.mjs')
    writeFileSync(program, script)
    const commands = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" "$1"'
    const { stdout, stderr } = spawnSync('/bin/sh', ['-c', commands, process.execPath, program], {
      cwd: root,
      encoding: 'utf8',
    })
    t.equal(stderr, '')
    t.same(JSON.parse(stdout), [
      '/b',
      'TypeError "certs" begins in the working directory, which was removed: name an absolute path, or change to another directory',
    ])
  },
)
