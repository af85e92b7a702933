/** Editors show what the library's documentation comments say: each public name has one, and so has each of its members. */
import { join } from 'node:path'
import t from 'tap'
import ts from 'typescript'
import { project } from '../project.js'

interface Named {
  readonly name: string
  readonly comment: string
}

/** Each name that a module exports, then the members of its class, interface or options that the project declares. */
function publicNames(path: string): Named[] {
  const { NodeNext: module } = ts.ModuleKind
  const { NodeNext: moduleResolution } = ts.ModuleResolutionKind
  const options = { module, moduleResolution, lib: ['lib.es2023.d.ts'], types: [], noEmit: true }
  const program = ts.createProgram([path], options)
  const checker = program.getTypeChecker()
  const named = (symbol: ts.Symbol, owner = ''): Named => ({
    name: owner + symbol.name,
    comment: ts.displayPartsToString(symbol.getDocumentationComment(checker)),
  })
  const isOwn = ({ declarations = [] }: ts.Symbol) =>
    declarations.some((one) => one.getSourceFile().fileName.startsWith(join(project, 'src')))
  const source = program.getSourceFile(path)
  const symbol = source && checker.getSymbolAtLocation(source)
  if (symbol === undefined) throw new Error(`${path} is no module`)
  return checker.getExportsOfModule(symbol).flatMap((exported) => {
    const meant = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
    const type = checker.getDeclaredTypeOfSymbol(meant)
    const members = type.flags & ts.TypeFlags.StringLike || type.isUnion() ? [] : checker.getPropertiesOfType(type)
    return [named(meant), ...members.filter(isOwn).map((member) => named(member, `${meant.name}.`))]
  })
}

await t.test('each public name of the library and each of its members has a documentation comment', async (t) => {
  const names = publicNames(join(project, 'src/index.ts'))
  t.ok(names.length > 100, `${names.length} were found`)
  for (const name of ['replaceFile', 'DurableWriteError.code', 'Publication.digest', 'FileOptions.lockTimeout'])
    t.ok(
      names.some((one) => one.name === name),
      name,
    )
  t.same(
    names.filter(({ comment }) => comment.trim() === '').map(({ name }) => name),
    [],
  )
})
