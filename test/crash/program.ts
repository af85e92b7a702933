import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { transformSync } from 'esbuild'
import { project } from '../project.js'

/** One step of the program weakened: in `file` (from the root), `find`, which must be there once, becomes `replace`. */
export interface Patch {
  readonly file: string
  readonly find: string
  readonly replace: string
}

/** The sources as they were when the first copy was made: all copies are of one program, whoever edits it meanwhile. */
const texts = new Map<string, string>()
/** Compiled sources by path: each is compiled once, however many copies are made. */
const compiled = new Map<string, string>()

/** The program, and the suites that are put before it: a copy stands on its own, whatever is built meanwhile. */
const rooms = [
  'src',
  'native',
  'bin',
  'test/crash',
  'test/disk',
  'test/durable',
  'test/native',
  'test/runner',
  'test/static-pods',
  'test/check',
]

/** As the project compiles: an import that only a type needs is written as such, and all others stay. */
const tsconfigRaw = { compilerOptions: { verbatimModuleSyntax: true } }

/** What tests of these rooms take from others. */
const taken = ['test/e2e/authority.ts', 'test/kubernetes/credentials/kubeconfig-text.ts']

/** What stands in `test` itself, and what is taken from other rooms of tests. */
function sharedByTests(): string[] {
  const own = readdirSync(join(project, 'test')).filter((name) => name.endsWith('.ts'))
  return [...own.map((name) => `test/${name}`), ...taken]
}

const read = new Set<string>()

function sources(more: readonly string[] = []): ReadonlyMap<string, string> {
  const missing = [...rooms, ...more].filter((room) => !read.has(room))
  const paths = missing.flatMap((room) =>
    readdirSync(join(project, room), { recursive: true, encoding: 'utf8' })
      .map((path) => `${room}/${path}`)
      .filter((path) => /(\.(ts|js|txt)|\/package\.json)$/.test(path)),
  )
  if (read.size === 0) paths.push(...sharedByTests())
  for (const room of missing) read.add(room)
  for (const path of paths) texts.set(path, readFileSync(join(project, path), 'utf8'))
  return texts
}

/** As every source of a copy is. Throws where it is no TypeScript. */
export function compile(text: string): string {
  return transformSync(text, { loader: 'ts', format: 'esm', target: 'es2023', tsconfigRaw }).code
}

/** Throws where a patch no longer fits: a step that was rewritten needs its mutation rewritten. */
function patched(path: string, text: string, patches: readonly Patch[]): string {
  let after = text
  for (const { file, find, replace } of patches) {
    if (file !== path) continue
    const [before, tail, more] = after.split(find)
    if (before === undefined || tail === undefined || more !== undefined) {
      throw new Error(`the mutation of ${file} no longer fits: this is not there exactly once:\n${find}`)
    }
    after = before + replace + tail
  }
  return after
}

/** What of these patches fits no more: said at once, and of all, before anything is run for minutes. */
export function misfits(patches: readonly Patch[]): string[] {
  return patches.flatMap((patch) => {
    const { file, find } = patch
    const text = sources().get(file)
    const times = text === undefined ? 0 : text.split(find).length - 1
    return times === 1 ? [] : [`${file} has this ${times} times, not once:\n${find}`]
  })
}

/**
 * Program and suites, compiled, with these patches, in a directory of its own. Remove it with `remove`. `more`: what is copied
 * besides.
 */
export function makeProgram(
  patches: readonly Patch[] = [],
  more: readonly string[] = [],
): { directory: string; remove: () => void } {
  const directory = mkdtempSync(join(realpathSync(tmpdir()), 'holdfast-program-'))
  const files = sources(more)
  for (const { file } of patches) if (!files.has(file)) throw new Error(`the mutation's file ${file} is gone`)
  for (const [path, source] of files) {
    const output = join(directory, path.replace(/\.ts$/, '.js'))
    mkdirSync(dirname(output), { recursive: true })
    const isPatched = patches.some(({ file }) => file === path)
    let code = isPatched ? undefined : compiled.get(path)
    if (code === undefined) {
      const text = patched(path, source, patches)
      code = path.endsWith('.ts') ? compile(text) : text
      if (!isPatched) compiled.set(path, code)
    }
    writeFileSync(output, code)
  }
  writeFileSync(join(directory, 'package.json'), readFileSync(join(project, 'package.json')))
  // Some tests start the built program: this copy is it.
  symlinkSync('.', join(directory, 'dist'))
  symlinkSync(join(project, 'node_modules'), join(directory, 'node_modules'))
  return { directory, remove: () => rmSync(directory, { recursive: true, force: true }) }
}
