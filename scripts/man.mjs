/** Manual pages, from the commands' own help: a new flag of the parser is in its page. man(7), for man-db and mandoc. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { common, project } from './program.mjs'

/** Writes `man/*.1`, for the package. */
export async function writeManPages() {
  // At the place of its source's output, from which it finds its version.
  const outfile = join(project, 'dist/src/cli/program-for-man.mjs')
  await build({ ...common, entryPoints: ['src/cli/program.ts'], outfile, format: 'esm', packages: 'external' })
  const { program } = await import(pathToFileURL(outfile).href)
  rmSync(outfile)
  const stream = { isTTY: false, columns: 80, write() {} }
  const pages = manPages(await program({ stdout: stream, stderr: stream, env: {} }))
  const directory = join(project, 'man')
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory)
  for (const [name, text] of pages) writeFileSync(join(directory, name), text)
}

/** The page of each command that its help lists, by the name of its file. `holdfast`: commander's. */
export function manPages(holdfast) {
  const { version } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))
  return new Map(commandsBelow(holdfast, []).map((path) => [`${nameOf(path)}.1`, pageOf(path, version)]))
}

/** Each as the way to it: the program, a command, its subcommand. */
function commandsBelow(command, above) {
  const path = [...above, command]
  return [path, ...visibleBelow(command).flatMap((child) => commandsBelow(child, path))]
}

function visibleBelow(command) {
  return command
    .createHelp()
    .visibleCommands(command)
    .filter((child) => child.name() !== 'help')
}

function nameOf(path) {
  return path.map((command) => command.name()).join('-')
}

function pageOf(path, version) {
  const command = path.at(-1)
  const help = command.createHelp()
  const [summary] = (command.summary() || command.description()).split('\n')
  const { examples, exitCodes, paragraphs } = textAfter(command)
  const others = [
    ...path.slice(0, -1).map((_, index) => path.slice(0, index + 1)),
    ...visibleBelow(command).map((one) => [...path, one]),
  ]
  return [
    `.TH ${quoted(nameOf(path).toUpperCase())} 1 "" ${quoted(`holdfast ${version}`)} ${quoted('holdfast')}`,
    ...section('NAME', [`${escaped(nameOf(path))} \\- ${escaped(summary.replace(/\.$/, ''))}`]),
    ...section('SYNOPSIS', [`.B ${escaped(path.map((one) => one.name()).join(' '))}`, line(command.usage())]),
    ...section('DESCRIPTION', paragraphsOf([command.description(), ...paragraphs].join('\n\n'))),
    ...section(
      'ARGUMENTS',
      help
        .visibleArguments(command)
        .flatMap((argument) => item(`<${argument.name()}>`, help.argumentDescription(argument))),
    ),
    ...section(
      'OPTIONS',
      help.visibleOptions(command).flatMap((option) => item(option.flags, help.optionDescription(option))),
    ),
    ...section(
      'COMMANDS',
      visibleBelow(command).flatMap((child) => item(child.name(), help.subcommandDescription(child))),
    ),
    ...section('EXAMPLES', examples.length > 0 ? ['.nf', ...examples.map(line), '.fi'] : []),
    ...section('EXIT STATUS', paragraphsOf(exitCodes)),
    ...section(
      'SEE ALSO',
      others.length > 0 ? [others.map((one) => `.BR ${escaped(nameOf(one))} (1)`).join('\n')] : [],
    ),
    '',
  ].join('\n')
}

/** What stands behind the options: examples, exit codes, and the rest. */
function textAfter(command) {
  let text = ''
  command.emit('afterHelp', { error: false, command, write: (more) => void (text += more) })
  const blocks = text
    .trim()
    .split(/\n{2,}/)
    // The page explains all options.
    .filter((block) => block !== '' && !block.startsWith('Global options '))
  const isExamples = (block) => block.startsWith('Examples:\n')
  const isCodes = (block) => block.startsWith('Exit codes: ')
  return {
    examples: blocks.filter(isExamples).flatMap((block) =>
      block
        .split('\n')
        .slice(1)
        .map((one) => one.replace(/^ {2}/, '')),
    ),
    exitCodes: blocks
      .filter(isCodes)
      .map((block) => block.slice('Exit codes: '.length))
      .join('\n\n'),
    paragraphs: blocks.filter((block) => !isExamples(block) && !isCodes(block)),
  }
}

function section(title, lines) {
  return lines.length === 0 ? [] : [`.SH ${title}`, ...lines]
}

function item(term, description) {
  return ['.TP', `.B ${escaped(term)}`, line(description.replace(/\s+/g, ' '))]
}

function paragraphsOf(text) {
  return text
    .split(/\n{2,}/)
    .filter((paragraph) => paragraph.trim() !== '')
    .flatMap((paragraph, index) => [...(index > 0 ? ['.PP'] : []), line(paragraph.trim().replace(/\s+/g, ' '))])
}

/** Text that is no request, with any first character. */
function line(text) {
  return escaped(text).replace(/^([.'])/, '\\&$1')
}

/** In ASCII, which every formatter reads in every locale. */
function escaped(text) {
  const ascii = text.replaceAll('\\', '\\e').replaceAll('-', '\\-')
  return ascii.replace(/[^\n -~]/gu, (one) => `\\[u${one.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}]`)
}

function quoted(text) {
  return `"${escaped(text).replaceAll('"', '\\(dq')}"`
}
