/**
 * Makes what `npm pack` puts into the package, in `dist`: program and library bundled (program.mjs), their types, and the licences of their
 * parts; and in `man` the manual pages. The next `npm run compile` finds that its own output is gone, and makes all of it again.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { leadToLines } from './line-maps.mjs'
import { writeManPages } from './man.mjs'
import { bundleProgram } from './program.mjs'

const project = join(import.meta.dirname, '..')
const dist = join(project, 'dist')

for (const name of ['.compiled.json', 'types.tsbuildinfo', 'src', 'native', 'torture', 'licenses'])
  rmSync(join(dist, name), { recursive: true, force: true })
execFileSync(process.execPath, [join(project, 'node_modules/typescript/bin/tsc'), '--project', 'tsconfig.build.json'], {
  cwd: project,
  stdio: 'inherit',
})
dropUnusedTypes()
await bundleProgram({ dist, licenses: join(dist, 'licenses'), library: true })
leadToLines(dist)
await writeManPages()

/** Leaves the types that the library's own lead to. */
function dropUnusedTypes() {
  const used = new Set()
  const visit = (path) => {
    if (used.has(path)) return
    used.add(path)
    for (const [, name] of readFileSync(path, 'utf8').matchAll(/(?:from |import\()['"](\.[^'"]*)\.js['"]/g))
      visit(join(dirname(path), `${name}.d.ts`))
  }
  visit(join(dist, 'src/index.d.ts'))
  for (const room of ['src', 'native', 'torture']) {
    for (const name of readdirSync(join(dist, room), { recursive: true })) {
      const path = join(dist, room, name)
      if (name.endsWith('.d.ts') && !used.has(path)) rmSync(path)
    }
  }
}
