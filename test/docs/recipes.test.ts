/** docs/recipes.md: the program's own readers accept the examples for copying. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import t from 'tap'
import { contentRules } from '../../src/cli/content/content-rules.js'
import { program } from '../../src/cli/program.js'
import { parseConfiguration } from '../../src/config/parse.js'
import { testIo } from '../cli/in-process.js'
import { project } from '../project.js'

const page = readFileSync(join(project, 'docs/recipes.md'), 'utf8')

function blocks(...languages: readonly string[]): string[] {
  const fenced = [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)]
  return fenced.filter(([, language = '']) => languages.includes(language)).map(([, , text = '']) => text)
}

/** The commands of holdfast in a text: in a transcript those behind the prompt, in a sentence those between backquotes. */
function commandsIn(text: string, pattern: RegExp): string[][] {
  const lines = [...text.matchAll(pattern)].map(([, line = '']) => line.replace(/(?: &| +#.*)$/, ''))
  return lines.map((line) => line.split(/ (?:--|[|>&;<]+)(?: |$)/)[0]?.split(/ +/) ?? [])
}

const { commands }: { commands: readonly Command[] } = await program(testIo().io)

/** What the program does not know of a command; undefined: it knows all of it. */
function unknown([name = '', ...words]: readonly string[]): string | undefined {
  const command = commands.find((one) => one.name() === name)
  if (command === undefined) return `no command ${name}`
  const known = command.options.flatMap(({ long, short }) => [long, short])
  const option = words.find((word) => word.startsWith('-') && !known.includes(word.split('=')[0]))
  return option === undefined ? undefined : `${name} has no option ${option}`
}

await t.test('its configurations pass the agent’s own reader', async (t) => {
  const configurations = blocks('yaml').filter((text) => text.includes('kind: AgentConfiguration'))
  // That of source.files, where nothing names another.
  const [file, options] = ['/etc/holdfast/holdfast.yaml', { defaultNamespace: 'default' }] as const
  t.equal(configurations.length, 8)
  for (const text of configurations) {
    const { directories } = await parseConfiguration(text, file, options)
    t.ok(directories.length > 0)
  }
  const mistaken = (configurations[0] ?? '').replace('afterPublish', 'afterPublished')
  await t.rejects(parseConfiguration(mistaken, file, options), { message: /afterPublished/ })
})

await t.test('its other YAML is a pod that kubelet takes', async (t) => {
  const pods = blocks('yaml').filter((text) => text.includes('kind: Pod'))
  t.equal(pods.length, 1)
  for (const text of pods) t.equal(await contentRules.pod(Buffer.from(text)), undefined)
})

await t.test('its commands are those of the program, with their options', (t) => {
  const used = [
    ...commandsIn(blocks('console').join(''), /^# holdfast (.+)$/gm),
    ...commandsIn(blocks('sh').join(''), /^holdfast (.+)$/gm),
    ...commandsIn(page, /`holdfast ([^`\n]+)`/g),
  ]
  t.ok(used.length >= 25, `${used.length} were found`)
  t.same(
    used.flatMap((words) => unknown(words) ?? []),
    [],
  )
  t.equal(unknown(['publish', 'x']), 'no command publish')
  t.equal(unknown(['sync', '--hook', '--config=x']), 'sync has no option --hook')
  t.end()
})
