/** The project's Markdown: its pages, their links, their headings. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { project } from '../project.js'

/** Generated files, and files of other projects. */
const skipped = new Set(['node_modules', 'dist', 'coverage'])

/** Paths from the project's root. Of the directories with a leading dot, only `.github` holds pages. */
export function pages(directory = ''): string[] {
  return readdirSync(join(project, directory), { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (!entry.isDirectory()) return entry.name.endsWith('.md') ? [path] : []
    if (skipped.has(entry.name) || (entry.name.startsWith('.') && entry.name !== '.github')) return []
    return pages(path)
  })
}

export function read(page: string): string {
  return readFileSync(join(project, page), 'utf8')
}

/** The targets of the links in a page, in order; what stands in code is no link. */
export function linksOf(markdown: string): string[] {
  return [
    ...withoutFences(markdown)
      .replace(/`[^`\n]*`/g, '')
      .matchAll(/\]\(\s*<?([^()\s>]+)>?[^()]*\)/g),
  ].map(([, target = '']) => target)
}

/** The fragments that a page's headings can be reached by, as GitHub makes them: a second heading of one name gets `-1`. */
export function anchorsOf(markdown: string): Set<string> {
  const seen = new Map<string, number>()
  const anchors = [...withoutFences(markdown).matchAll(/^#{1,6} +(.+?)(?: +#+)? *$/gm)].map(([, heading = '']) => {
    const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const anchor = text.replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-')
    const before = seen.get(anchor) ?? 0
    seen.set(anchor, before + 1)
    return before === 0 ? anchor : `${anchor}-${before}`
  })
  return new Set(anchors)
}

/** What a page names of the project's own files. Links are not among them: they are relative to the page. */
export function projectPathsIn(markdown: string): string[] {
  const named = markdown.matchAll(
    /(?<![\w./(-])(?:\.ci|\.github|bench|bin|deploy|docs|native|scripts|src|test)\/[\w./*-]*/g,
  )
  const paths = [...named].map(([path]) => path.replace(/\.$/, ''))
  // NAME is for the reader to fill in.
  return [...new Set(paths)].filter((path) => !/\/NAME\b/.test(path))
}

function withoutFences(markdown: string): string {
  return markdown.replace(/^( *)(```|~~~)[^\n]*\n[\s\S]*?^\1\2 *$/gm, '')
}
