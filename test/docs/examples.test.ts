/** The examples of all pages: the program's own readers accept the configurations, and its commands and flags are those that it has. */
import type { Command } from 'commander'
import t from 'tap'
import { contentRules } from '../../src/cli/content/content.js'
import { program } from '../../src/cli/program.js'
import { parseConfiguration } from '../../src/config/parse.js'
import { testIo } from '../cli/in-process.js'
import { pages, read } from './pages.js'

const shown = pages().filter((page) => page === 'README.md' || page.startsWith('docs/'))

interface Block {
  readonly page: string
  readonly language: string
  readonly text: string
}

const blocks: readonly Block[] = shown.flatMap((page) =>
  [...read(page).matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = '', text = '']) => ({
    page,
    language,
    text,
  })),
)

/** The words of each command of holdfast in a text; a line that ends with a backslash goes on in the next one. */
function commandsIn(text: string, pattern: RegExp): string[][] {
  const lines = [...text.replaceAll(/\\\n +/g, ' ').matchAll(pattern)].map(([, line = '']) =>
    line.replace(/(?: &| +#.*)$/, ''),
  )
  return lines.map(
    (line) => line.split(/ (?:--|[\\|>&;<]+)(?: |$)|\)?; /)[0]?.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? [],
  )
}

const { commands }: { commands: readonly Command[] } = await program(testIo().io)

/** What the program does not know of a command; undefined: it knows all of it. */
function unknown([name = '', ...words]: readonly string[]): string | undefined {
  const outer = commands.find((one) => one.name() === name)
  const command = outer?.commands.find((one) => one.name() === words[0]) ?? outer
  if (command === undefined) return `no command ${name}`
  const known = command.options.flatMap(({ long, short }) => [long, short])
  const option = words.find((word) => /^--?[a-z]/.test(word) && !known.includes(word.split('=')[0]))
  return option === undefined || option === '--help' ? undefined : `${name} has no option ${option}`
}

await t.test('each configuration passes the agent’s own reader', async (t) => {
  const configurations = blocks.filter(({ text }) => text.includes('kind: AgentConfiguration'))
  // That of source.files, where nothing names another.
  const [file, options] = ['/etc/holdfast/holdfast.yaml', { defaultNamespace: 'default' }] as const
  t.ok(configurations.length >= 11, `${configurations.length} were found`)
  for (const { page, text } of configurations) {
    const { directories } = await parseConfiguration(text, file, options)
    t.ok(directories.length > 0, page)
  }
  const mistaken = (configurations[0]?.text ?? '').replace('contents', 'contentz')
  await t.rejects(parseConfiguration(mistaken, file, options), { message: /contentz/ })
})

await t.test('each pod is one that kubelet takes', async (t) => {
  const pods = blocks.filter(({ text }) => /^kind: Pod$/m.test(text))
  t.ok(pods.length >= 1)
  for (const { page, text } of pods)
    t.equal(await contentRules.pod(Buffer.from(text), (doubt) => t.fail(doubt)), undefined, page)
})

await t.test('each command is one of the program, with its options', async (t) => {
  const indented = /^(?: {4}(?:[$#] )?|[$#] )(?:kubectl .*-- )?holdfast (\w.+)$/gm
  const scripts = blocks.filter(({ language }) => language === 'sh')
  const used = [
    ...shown.flatMap((page) =>
      [indented, /`holdfast (\w[^`\n]+)`/g].flatMap((pattern) =>
        commandsIn(read(page), pattern).map((words) => ({ page, words })),
      ),
    ),
    ...scripts.flatMap(({ page, text }) => commandsIn(text, /^holdfast (.+)$/gm).map((words) => ({ page, words }))),
  ]
  t.ok(used.length >= 100, `${used.length} were found`)
  t.same(
    used.flatMap(({ page, words }) => {
      const problem = unknown(words)
      return problem === undefined ? [] : [`${page}: holdfast ${words.join(' ')}: ${problem}`]
    }),
    [],
  )
  t.equal(unknown(['publish', 'x']), 'no command publish')
  t.equal(unknown(['sync', '--hook', '--config=x']), 'sync has no option --hook')
})
