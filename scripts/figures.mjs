/*
 * How long the way into the core is: printed by `npm run lint`, which fails where a figure is above its bound.
 *
 *   closure  lines that a reader of "how is one directory published?" reads: what src/durable/publish/publish.ts and
 *            directory-publication.ts import by value within their room, the interface of the calls, and the doors below
 *   names    that the door of the core hands to the other rooms; a module that it hands on whole is one
 *   up       imports that run from a room of the core to one above it, or past a door
 *   floors   files in the longest chain of files whose values the next one uses, whichever doors hand them on
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import process from 'node:process'
import ts from 'typescript'
import { floors } from './floors.mjs'

const core = 'src/durable'
/** What the way may be: the closure as it is meant; names and floors as they are, so that they only fall. */
const bounds = { closure: 2_200, names: 44, up: 0, floors: 12 }

const files = readdirSync(core, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => join(core, file))
const sources = new Map(
  files.map((file) => [file, ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest)]),
)

/** What a file imports from the core; `value`: not only for its types. */
function importsOf(file) {
  return sources.get(file).statements.flatMap((statement) => {
    const specifier = statement.moduleSpecifier
    if (specifier === undefined || !specifier.text.startsWith('.')) return []
    const to = normalize(join(dirname(file), specifier.text)).replace(/\.js$/, '.ts')
    if (!sources.has(to)) return []
    const clause = statement.importClause ?? statement
    const named = clause.namedBindings ?? statement.exportClause
    const isType = clause.isTypeOnly || named?.elements?.every((element) => element.isTypeOnly) === true
    return [{ to, value: !isType }]
  })
}

const edges = new Map(files.map((file) => [file, importsOf(file)]))
const roomOf = (file) => floors.indexOf(file.split('/')[2])
const linesOf = (file) => readFileSync(file, 'utf8').split('\n').length - 1

function closureOf(starts) {
  const seen = new Set(starts)
  for (const file of seen)
    for (const { to, value } of edges.get(file)) if (value && roomOf(to) === roomOf(starts[0])) seen.add(to)
  return [...seen]
}

const own = closureOf([`${core}/publish/publish.ts`, `${core}/publish/directory-publication.ts`])
const read = [
  ...own,
  `${core}/file-system.ts`,
  ...['path', 'posix', 'record', 'target', 'keep'].map((room) => `${core}/${room}/index.ts`),
]
const closure = read.reduce((sum, file) => sum + linesOf(file), 0)

/** Names that a door exports, also by `export *`. */
function namesOf(file) {
  return sources.get(file).statements.flatMap((statement) => {
    if (ts.isExportDeclaration(statement)) {
      const { exportClause, moduleSpecifier } = statement
      if (exportClause?.name !== undefined) return [exportClause.name.text]
      if (exportClause !== undefined) return exportClause.elements.map(({ name }) => name.text)
      return namesOf(normalize(join(dirname(file), moduleSpecifier.text)).replace(/\.js$/, '.ts'))
    }
    const isExported = statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
    if (!isExported) return []
    if (ts.isVariableStatement(statement)) return statement.declarationList.declarations.map(({ name }) => name.text)
    return [statement.name.text]
  })
}

const names = new Set(namesOf(`${core}/index.ts`)).size
const up = files.flatMap((file) =>
  edges.get(file).flatMap(({ to }) => {
    const [from, into] = [roomOf(file), roomOf(to)]
    const isAllowed = from === into || from === -1 || into === -1 || (into < from && to.endsWith('/index.ts'))
    return isAllowed ? [] : [`${file} imports ${to}`]
  }),
)

/** The file in which what `file` exports by this name stands, through each door on the way; undefined where it is not of the core. */
function homeOf(file, name) {
  for (const statement of sources.get(file).statements) {
    if (ts.isExportDeclaration(statement)) {
      const { exportClause, moduleSpecifier } = statement
      const to = moduleSpecifier && normalize(join(dirname(file), moduleSpecifier.text)).replace(/\.js$/, '.ts')
      const element = exportClause?.elements?.find((one) => one.name.text === name)
      if (exportClause?.name?.text === name) return to
      if (element !== undefined)
        return sources.has(to) ? homeOf(to, (element.propertyName ?? element.name).text) : undefined
      if (exportClause === undefined && sources.has(to)) {
        const home = homeOf(to, name)
        if (home !== undefined) return home
      }
    } else if (statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) {
      const { declarationList } = statement
      const own = declarationList?.declarations.map((one) => one.name.text) ?? [statement.name.text]
      if (own.includes(name)) return file
    }
  }
  return undefined
}

/** The files of the core whose values a file uses: what a door hands on counts as an import of the file behind it. */
function usedBy(file) {
  return sources.get(file).statements.flatMap((statement) => {
    if (!ts.isImportDeclaration(statement) || statement.importClause?.isTypeOnly === true) return []
    const to = normalize(join(dirname(file), statement.moduleSpecifier.text)).replace(/\.js$/, '.ts')
    if (!sources.has(to)) return []
    const names = (statement.importClause?.namedBindings?.elements ?? []).filter((one) => !one.isTypeOnly)
    return names.flatMap((one) => homeOf(to, (one.propertyName ?? one.name).text) ?? [])
  })
}

const depths = new Map()
function depthOf(file) {
  if (!depths.has(file)) {
    depths.set(file, 0)
    depths.set(file, Math.max(0, ...usedBy(file).map(depthOf)) + 1)
  }
  return depths.get(file)
}

const figures = { closure, names, up: up.length, floors: Math.max(...files.map(depthOf)) }
for (const line of up) console.error(line)
if (process.argv.includes('--floors'))
  for (const file of files.toSorted((a, b) => depthOf(b) - depthOf(a)))
    console.log(
      `${String(depthOf(file)).padStart(5)} ${file} <- ${[...new Set(usedBy(file))].filter((below) => depthOf(below) === depthOf(file) - 1).join(' ')}`,
    )
console.log(
  `the core: ${Object.entries(figures)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')}`,
)
if (process.argv.includes('--list'))
  for (const file of read) console.log(`${String(linesOf(file)).padStart(5)} ${file}`)
for (const [name, value] of Object.entries(figures)) {
  if (value <= bounds[name]) continue
  console.error(`${name} is ${value}, and may be ${bounds[name]} at most: scripts/figures.mjs says what it counts`)
  process.exitCode = 1
}
