/**
 * Makes what `npm pack` puts into the package, in `dist`: program and library bundled (program.mjs), their types, the licences of their
 * parts, and what these are (sbom.mjs); and in `man` the manual pages. The next `npm run compile` finds that its own output is gone, and makes all of it again.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { leadToLines } from './line-maps.mjs'
import { writeManPages } from './man.mjs'
import { bundleProgram } from './program.mjs'
import { writeSbom } from './sbom.mjs'

const project = join(import.meta.dirname, '..')
const dist = join(project, 'dist')

for (const name of ['.compiled.json', 'types.tsbuildinfo', 'src', 'native', 'torture', 'licenses'])
  rmSync(join(dist, name), { recursive: true, force: true })
// What is wrong with types, lint says: half of the compiler's time goes into that.
const declarations = ['--project', 'tsconfig.build.json', '--noCheck']
execFileSync(process.execPath, [join(project, 'node_modules/typescript/bin/tsc'), ...declarations], {
  cwd: project,
  stdio: 'inherit',
})
dropUnusedTypes()
const licenses = join(dist, 'licenses')
const metafiles = await bundleProgram({ dist, licenses, library: true })
// npm installs koffi beside it, and of its binaries that of the machine.
writeSbom(metafiles, licenses, {
  beside: ['koffi'],
  optional: ['@koromix/koffi-linux-arm64', '@koromix/koffi-linux-x64'],
})
leadToLines(dist)
await writeManPages()
setModes()

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

/** Gives what is packed the modes that git knows, whatever umask made the files: npm packs them as they are. */
function setModes() {
  const { files, bin } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))
  const programs = Object.values(bin)
  const below = (name) =>
    statSync(join(project, name)).isDirectory()
      ? readdirSync(join(project, name), { recursive: true }).map((path) => join(name, path))
      : [name]
  // npm takes the first two in any case.
  const packed = ['package.json', 'LICENSE', ...files].flatMap(below)
  for (const path of packed.filter((name) => statSync(join(project, name)).isFile()))
    chmodSync(join(project, path), programs.includes(path) ? 0o755 : 0o644)
}
