/** The manual pages (scripts/man.mjs): one for each command, with each of its options, as man shows them. */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Command } from 'commander'
import t from 'tap'
import { program } from '../../src/cli/program.js'
import { project } from '../project.js'
import { scratch } from './holdfast.js'
import { testIo } from './in-process.js'

interface Script {
  readonly manPages: (program: Command) => ReadonlyMap<string, string>
}

const { manPages } = (await import(pathToFileURL(join(project, 'scripts/man.mjs')).href)) as Script
const pages = manPages(await program(testIo().io))
const plain = (page: string) =>
  page
    .replaceAll('\\-', '-')
    .replaceAll('\\e', '\\')
    .replace(/\\\[u([0-9A-F]+)\]/g, (_, code: string) => String.fromCodePoint(Number.parseInt(code, 16)))

await t.test('each command has a man page with each option, and the package names it', async (t) => {
  const nodesOf = (command: Command, above: readonly string[] = []): { path: string; command: Command }[] => {
    const names = [...above, command.name()]
    const below = command
      .createHelp()
      .visibleCommands(command)
      .filter((one) => one.name() !== 'help')
    return [{ path: names.join('-'), command }, ...below.flatMap((one) => nodesOf(one, names))]
  }
  const nodes = nodesOf(await program(testIo().io))
  const names = nodes.map(({ path }) => `${path}.1`)
  t.strictSame([...pages.keys()], names)
  const { man, files } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as Record<string, string[]>
  t.strictSame(
    man,
    [...names].sort().map((name) => `man/${name}`),
    'package.json, "man"',
  )
  t.ok(files?.includes('man'))
  for (const { path, command } of nodes) {
    const page = plain(pages.get(`${path}.1`) ?? '')
    const flags = command.options.filter(({ hidden }) => !hidden)
    const words = flags.map(({ short, long }) => [short, long].filter((name) => name !== undefined).join(', '))
    for (const flag of [...words, '-h, --help'])
      t.ok(
        page.split('\n').some((line) => line.startsWith('.B ') && line.includes(flag)),
        `${path}: ${flag}`,
      )
    for (const title of ['NAME', 'SYNOPSIS', 'DESCRIPTION', 'OPTIONS']) t.match(page, `\n.SH ${title}\n`, path)
  }
})

await t.test("man renders each page without a warning, with the help's text", async (t) => {
  const root = scratch(t)
  const file = join(root, 'holdfast-write.1')
  writeFileSync(file, pages.get('holdfast-write.1') ?? '')
  t.match(
    plain(pages.get('holdfast-write.1') ?? ''),
    /^\.nf\n[\s\S]*kubectl get configmap ca -o 'jsonpath=\{\.data\.ca\\\.crt\}'\n/m,
  )
  t.match(plain(pages.get('holdfast-write.1') ?? ''), /^\.SH EXIT STATUS\n0 published or already so/m)
  const { status, stdout, stderr, error } = spawnSync('groff', ['-man', '-Tutf8', '-ww', '-P-cbou', file], {
    encoding: 'utf8',
  })
  if (error === undefined) {
    t.equal(status, 0)
    t.equal(stderr, '')
    t.match(stdout, /SYNOPSIS\n +holdfast write \[options\] <file>/)
    t.match(stdout, / --expect <digest>\n +publish only content with this digest: sha256:HEX/)
  } else t.comment('no groff')
  for (const [name, page] of pages)
    t.notMatch(
      page.replace(/^\.(TH|SH|B|BR|TP|PP|nf|fi)\b.*$/gm, ''),
      /^[.']/m,
      `${name}: no text is taken for a request`,
    )
})
