/** What each test runs of the sources: by its imports, and where it starts the program, by those of the program. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { project } from '../project.js'

/** Paths from the project's root. */
export function typescriptFiles(directory: string): string[] {
  return readdirSync(join(project, directory), { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) return typescriptFiles(path)
    return entry.name.endsWith('.ts') ? [path] : []
  })
}

const program = 'src/cli/main.ts'
const library = 'src/index.ts'

/** The direct imports of a file: of values and of types, late ones, and the threads and the program that it starts. */
function edges(path: string): string[] {
  const text = readFileSync(join(project, path), 'utf8')
  const imported = [...text.matchAll(/(?:from|import|new URL)\s*\(?\s*'(\.[^']+)\.js'/g)].map(([, target = '']) =>
    normalize(join(dirname(path), `${target}.ts`)),
  )
  if (path !== 'test/project.ts' && /holdfast\.js|\bexecutable\b/.test(text)) imported.push(program)
  if (/dist\/src\/index\.js/.test(text)) imported.push(library)
  return imported
}

const known = new Map<string, readonly string[]>()

function edgesOf(path: string): readonly string[] {
  let next = known.get(path)
  if (next === undefined) {
    try {
      next = edges(path)
    } catch {
      // Not a file of the project: a built one, or text that only looks like an import.
      next = []
    }
    known.set(path, next)
  }
  return next
}

const measured = new Map<string, ReadonlyMap<string, number>>()

/** Every file that this one reaches, and how many imports away it is at least. */
export function distancesFrom(from: string): ReadonlyMap<string, number> {
  const before = measured.get(from)
  if (before) return before
  const distances = new Map<string, number>([[from, 0]])
  for (const [path, distance] of distances)
    for (const next of edgesOf(path)) if (!distances.has(next)) distances.set(next, distance + 1)
  measured.set(from, distances)
  return distances
}

/** Every file that this one reaches. */
export function reached(from: string): Set<string> {
  return new Set(distancesFrom(from).keys())
}

const statement = /^(?:import|export) (?!type )([^']*?)\bfrom '(\.[^']+)\.js'/gm
const late = /(?:import|new URL)\('(\.[^']+)\.js'/g

/** The files whose values one imports, each with their names; none for all that it exports. Behind a room's door, those that it leads to. */
function values(path: string): { file: string; names: string[] }[] {
  const text = readFileSync(join(project, path), 'utf8')
  const at = (target = ''): string => normalize(join(dirname(path), `${target}.ts`))
  const first = [...text.matchAll(statement)].map(([, names = '', target]) => ({
    file: at(target),
    names: [...names.matchAll(/(?<!\btype )\b\w+(?= as |\s*[,}])/g)].map(([name]) => name),
    isOnlyTypes: /^\{(\s*type \w+( as \w+)?,?)*\s*\}\s*$/.test(names),
  }))
  const found = first.filter(({ isOnlyTypes }) => !isOnlyTypes)
  const all = [...found, ...[...text.matchAll(late)].map(([, target]) => ({ file: at(target), names: [] }))]
  // A test may hold text that only looks like an import.
  return all.filter(({ file }) => existsSync(join(project, file)))
}

/** The files whose values this one uses. */
export function usedBy(path: string): string[] {
  return values(path).flatMap(({ file, names }) => {
    if (!file.endsWith('/index.ts')) return [file]
    return values(file).flatMap((behind) => (behind.names.some((name) => names.includes(name)) ? [behind.file] : []))
  })
}
