/** CONTRIBUTING's recipes are true: where a member is added to one of the unions, the compiler names the files that lack it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import ts from 'typescript'

const root = process.cwd()

interface ExtensionPoint {
  readonly name: string
  /** Where the new member is declared: a text of the file, and what takes its place. */
  readonly file: string
  readonly before: string
  readonly after: string
  /** The files that the compiler then names. */
  readonly lacking: readonly string[]
}

const points: readonly ExtensionPoint[] = [
  {
    name: 'a hook type',
    file: 'src/config/hooks.ts',
    before: 'interface HookSettings {',
    after: 'interface HookSettings { readonly novel: { readonly word: string }',
    lacking: ['src/check/hooks.ts', 'src/config/hooks.ts', 'src/directories/hooks.ts'],
  },
  {
    name: 'a source',
    file: 'src/config/source.ts',
    before: 'interface SourceSettings {',
    after: 'interface SourceSettings { readonly novel: { readonly word: string }',
    lacking: ['src/agent/open-source.ts', 'src/check/check.ts', 'src/config/source.ts'],
  },
  {
    name: 'a validation',
    file: 'src/config/types.ts',
    before: "const validations = ['certificates'",
    after: "const validations = ['novel', 'certificates'",
    lacking: ['src/directories/validate.ts'],
  },
  {
    // Without the core, src/agent/desired-content.ts does not compile.
    name: 'a publish form, in the configuration',
    file: 'src/config/types.ts',
    before: 'export const publishForms = {',
    after: 'export const publishForms = { novel: { reservesDots: false },',
    lacking: [],
  },
  {
    name: 'a publish form, in the core',
    file: 'src/durable/types.ts',
    before: "publish?: 'exchange' |",
    after: "publish?: 'novel' | 'exchange' |",
    lacking: ['src/durable/publish/replace.ts'],
  },
]

/** Those of these files that do not compile with the changes. */
function broken(files: readonly string[], changes: readonly ExtensionPoint[]): string[] {
  const config = ts.readConfigFile(join(root, 'tsconfig.json'), (path) => ts.sys.readFile(path))
  const { options } = ts.parseJsonConfigFileContent({ ...config.config, files, include: [] }, ts.sys, root)
  const host = ts.createCompilerHost(options)
  const read = (path: string) => {
    const own = changes.filter(({ file }) => join(root, file) === path)
    return own.reduce((text, { before, after }) => text.replace(before, after), ts.sys.readFile(path) ?? '')
  }
  host.readFile = read
  host.getSourceFile = (path, target) => ts.createSourceFile(path, read(path), target)
  const paths = files.map((file) => join(root, file))
  const program = ts.createProgram(paths, { ...options, noEmit: true, incremental: false, composite: false }, host)
  return files.filter((file) => {
    const source = program.getSourceFile(join(root, file))
    return source === undefined || program.getSemanticDiagnostics(source).length > 0
  })
}

void t.test('the compiler names each file that a new member takes', async (t) => {
  for (const { name, file, before } of points) {
    t.equal(readFileSync(join(root, file), 'utf8').split(before).length, 2, `${name}: it is declared once in ${file}`)
  }
  const files = [...new Set(points.flatMap(({ lacking }) => lacking))].sort()
  t.strictSame(broken(files, points), files)
})
