import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { project } from '../../project.js'
import { typescriptFiles } from '../../docs/import-graph.js'
import { type Change, operators } from './operators.js'

/** One place of the program changed by one operator. */
export interface Mutant {
  /**
   * Function, operator and the changed text, without the names of variables: stays the same through edits elsewhere, moves of the function,
   * and new names of its file and its variables.
   */
  readonly id: string
  readonly file: string
  readonly line: number
  readonly change: Change
  /** Outside of every function: its change shows in each use of its file. */
  readonly isTopLevel: boolean
  /** The declaration that it stands in, as it is then: an answer holds as long as that is the same. */
  readonly context: string
}

export interface Source {
  readonly file: string
  readonly text: string
  readonly mutants: readonly Mutant[]
}

/** What static-pods does to the disk: the files that export these; the rest of that room decides, and asks. */
const staticPods = ['install', 'orphanedRecords', 'prune', 'recordLastKnownGood', 'WatchStart']

function files(): string[] {
  const exported = new RegExp(`^export (?:async )?(?:function|class) (?:${staticPods.join('|')})\\b`, 'm')
  const inStaticPods = typescriptFiles('src/static-pods').filter((path) => exported.test(textOf(path)))
  if (inStaticPods.length !== staticPods.length)
    throw new Error(`${inStaticPods.join(', ')}: each of these is to be exported once: ${staticPods.join(', ')}`)
  return [
    'src/checked-lines.ts',
    'src/mountinfo.ts',
    'src/parallel.ts',
    ...typescriptFiles('native'),
    ...typescriptFiles('src/durable'),
    ...inStaticPods,
  ].sort()
}

const textOf = (file: string): string => readFileSync(join(project, file), 'utf8')

/** `Class.method`, the function, or the constant at the top whose value it is. */
function ownerOf(node: ts.Node): string {
  const names: string[] = []
  for (let at = node; !ts.isSourceFile(at); at = at.parent) {
    if (ts.isConstructorDeclaration(at)) names.unshift('constructor')
    else if (ts.isFunctionLike(at) || ts.isClassLike(at) || ts.isPropertyDeclaration(at)) {
      if (at.name) names.unshift(at.name.getText())
    } else if (ts.isVariableDeclaration(at) && isOuter(at)) names.unshift(at.name.getText())
  }
  return names.join('.')
}

/** A variable that is a function, or stands at the top. */
function isOuter({ initializer, parent }: ts.VariableDeclaration): boolean {
  return (initializer !== undefined && ts.isArrowFunction(initializer)) || ts.isSourceFile(parent.parent.parent)
}

function isTopLevel(node: ts.Node): boolean {
  for (let at = node; !ts.isSourceFile(at); at = at.parent) if (ts.isFunctionLike(at)) return false
  return true
}

function shortened(text: string): string {
  const line = text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/(?<=[([]) /g, '')
    .replaceAll(/,? (?=[)\]])/g, '')
  return line.length <= 90 ? line : `${line.slice(0, 89)}…`
}

function changesOf(source: ts.SourceFile): Change[] {
  const changes: Change[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return
    for (const operator of Object.keys(operators) as (keyof typeof operators)[]) {
      for (const found of operators[operator](node, source)) changes.push({ ...found, operator })
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return changes
}

/** All mutants of a source, in the order of their places. */
export function mutantsOf(file: string, text: string): Mutant[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2023, true)
  const times = new Map<string, number>()
  return changesOf(source).map((change) => {
    const owner = ownerOf(change.site)
    const name = `${owner} ${change.operator} ${shortened(change.of)}`.trim()
    const nth = (times.get(name) ?? 0) + 1
    times.set(name, nth)
    const id = nth === 1 ? name : `${name} (${nth})`
    const line = source.getLineAndCharacterOfPosition(change.start).line + 1
    const around = source.statements.find((statement) => statement.end >= change.end) ?? source
    const context = text.slice(around.getStart(), change.start) + change.text + text.slice(change.end, around.end)
    return { id, file, line, change, isTopLevel: isTopLevel(change.site), context }
  })
}

/** @throws Error where two files hold mutants of one name: the lists could not tell them apart. */
export function byName(sources: readonly Source[]): Map<string, Mutant> {
  const named = new Map<string, Mutant>()
  for (const mutant of sources.flatMap(({ mutants }) => mutants)) {
    const other = named.get(mutant.id)
    if (other) throw new Error(`${other.file} and ${mutant.file} both hold ${mutant.id}: rename one of the functions`)
    named.set(mutant.id, mutant)
  }
  return named
}

/** The sources of the core, whose every step is put to the test. */
export function readSources(): Source[] {
  return files().map((file) => {
    const text = textOf(file)
    return { file, text, mutants: mutantsOf(file, text) }
  })
}

/**
 * The sources at or below these paths. Outside the core two files may hold functions of one name, and a mutant's name begins with its
 * file's.
 */
export function sourcesAt(paths: readonly string[], core = readSources()): Source[] {
  const isMeant = (file: string): boolean => paths.some((path) => file === path || file.startsWith(`${path}/`))
  const others = [...typescriptFiles('src'), ...typescriptFiles('torture')]
    .filter((file) => isMeant(file) && !core.some((source) => source.file === file))
    .map((file) => {
      const text = textOf(file)
      const mutants = mutantsOf(file, text).map((one) => ({ ...one, id: `${nameOf(file)}: ${one.id}` }))
      return { file, text, mutants }
    })
  return [...core.filter(({ file }) => isMeant(file)), ...others]
}

const nameOf = (file: string): string => file.replace(/^src\/|\.ts$/g, '')

export function mutated(text: string, { change: { start, end, text: replacement } }: Mutant): string {
  return text.slice(0, start) + replacement + text.slice(end)
}

/**
 * The source with a call of `hit(n)` wherever the nth mutant would show: around an expression, before a statement. `probe`: where
 * `hit` is imported from.
 */
export function probed({ text, mutants }: Source, first: number, probe: string): string {
  const inserts: { at: number; order: number; text: string }[] = []
  mutants.forEach(({ change: { site, operator } }, index) => {
    const start = site.getStart()
    const end = site.getEnd()
    const hit = `__hit(${first + index})`
    // The outer of two goes first where both begin, and last where both end.
    const length = end - start
    if (!ts.isStatement(site)) {
      inserts.push({ at: start, order: -length, text: `(${hit}, ` }, { at: end, order: length - 1e9, text: ')' })
    } else if (operator === 'swapped' || (operator === 'swallowed' && !ts.isThrowStatement(site))) {
      inserts.push({ at: start, order: -length, text: `${hit}; ` })
    } else inserts.push({ at: start, order: -length, text: `{ ${hit}; ` }, { at: end, order: length - 1e9, text: ' }' })
  })
  inserts.sort((a, b) => a.at - b.at || a.order - b.order)
  let result = ''
  let at = 0
  for (const insert of inserts) {
    result += text.slice(at, insert.at) + insert.text
    at = insert.at
  }
  return `import { hit as __hit } from '${probe}'\n${result}${text.slice(at)}`
}
