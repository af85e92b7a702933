import { existsSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import t from 'tap'
import { project } from '../project.js'
import { anchorsOf, linksOf, pages, read } from './pages.js'

/** The fault of one link of one page; undefined: it leads somewhere, or out of the project. */
function broken(page: string, link: string): string | undefined {
  if (/^[a-z][a-z+.-]*:/i.test(link)) return undefined
  const [path = '', fragment] = link.split('#')
  const target = path === '' ? page : normalize(join(dirname(page), path))
  if (target.startsWith('..')) return `${page}: ${link} leads out of the project`
  if (!existsSync(join(project, target))) return `${page}: ${link}: no such file`
  if (fragment === undefined) return undefined
  if (statSync(join(project, target)).isDirectory()) return `${page}: ${link}: a directory has no headings`
  return anchorsOf(read(target)).has(fragment) ? undefined : `${page}: ${link}: no such heading`
}

await t.test('every relative link and anchor in the Markdown of the project resolves', async (t) => {
  const links = pages().flatMap((page) => linksOf(read(page)).map((link) => ({ page, link })))
  t.ok(pages().includes('README.md') && pages().includes('docs/operations.md'), 'pages are found')
  t.ok(links.length > 20, 'links are found')
  t.same(
    links.flatMap(({ page, link }) => broken(page, link) ?? []),
    [],
  )
})

await t.test('a link is broken when its file, its heading or the project ends before it', async (t) => {
  t.match(broken('README.md', 'docs/none.md'), /no such file/)
  t.match(broken('README.md', 'docs/durability.md#none'), /no such heading/)
  t.match(broken('docs/durability.md', '#none'), /no such heading/)
  t.match(broken('README.md', 'docs/#none'), /a directory has no headings/)
  t.match(broken('README.md', '../none.md'), /leads out of the project/)
  t.equal(broken('docs/durability.md', '#the-guarantee'), undefined)
  t.equal(broken('docs/durability.md', '../README.md'), undefined)
  t.equal(broken('README.md', 'https://example.com/none.md'), undefined)
})

await t.test('links in code are none, and headings get the fragments that GitHub gives them', async (t) => {
  t.same(linksOf('[a](b.md) `[c](d.md)`\n```yaml\n[e](f.md)\n```\n[g](h.md#i "title")\n'), ['b.md', 'h.md#i'])
  t.same(
    [...anchorsOf('# Is this node fit?\n## `rbac` & [more](x.md)\n## a_b-c\n## a_b-c\n```sh\n# no heading\n```\n')],
    ['is-this-node-fit', 'rbac--more', 'a_b-c', 'a_b-c-1'],
  )
})
