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
import { type Edit, edited } from './changes.js'
import { Core } from './places.js'

/** The sources at the time of the first copy: all copies are of one program, in spite of later edits. */
const texts = new Map<string, string>()
/** Compiled sources by path: all copies share them. */
const compiled = new Map<string, string>()

/** The program, and the suites that are put before it: a copy does not depend on later builds. */
const rooms = [
  'src',
  'native',
  'torture',
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
const taken = ['test/e2e/authority.ts', 'test/kubernetes/credentials/kubeconfig-text.ts', 'test/cli/in-process.ts']

/** The files in `test` itself, and those from other rooms of tests. */
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

const isCore = /^(?:src\/(?:durable|static-pods)\/.*|src\/(?:checked-lines|mountinfo)|native\/.*)\.ts$/

/** The sources that mutations change, by their paths. */
export function coreTexts(): ReadonlyMap<string, string> {
  return new Map([...sources()].filter(([path]) => isCore.test(path)))
}

let theCore: Core | undefined

export function core(): Core {
  theCore ??= new Core(coreTexts())
  return theCore
}

/** Program and suites, compiled, with these edits, in a new directory. Remove it with `remove`. `more`: further files to copy. */
export function makeProgram(
  edits: readonly Edit[] = [],
  more: readonly string[] = [],
): { directory: string; remove: () => void } {
  const directory = mkdtempSync(join(realpathSync(tmpdir()), 'holdfast-program-'))
  const files = sources(more)
  for (const [path, source] of files) {
    const output = join(directory, path.replace(/\.ts$/, '.js'))
    mkdirSync(dirname(output), { recursive: true })
    const own = edits.filter(({ file }) => file === path)
    let code = own.length > 0 ? undefined : compiled.get(path)
    if (code === undefined) {
      code = path.endsWith('.ts') ? compile(edited(source, own)) : source
      if (own.length === 0) compiled.set(path, code)
    }
    writeFileSync(output, code)
  }
  writeFileSync(join(directory, 'package.json'), readFileSync(join(project, 'package.json')))
  const golden = 'test/crash/golden/disks.json.br'
  symlinkSync(join(project, golden), join(directory, golden))
  // Some tests start the built program: this copy is it.
  symlinkSync('.', join(directory, 'dist'))
  symlinkSync(join(project, 'node_modules'), join(directory, 'node_modules'))
  return { directory, remove: () => rmSync(directory, { recursive: true, force: true }) }
}
