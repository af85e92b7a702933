/** Every command and every flag of it, in each form that users of kubectl type. */
import type { Command, Option } from 'commander'
import t from 'tap'
import { program } from '../../../src/cli/program.js'
import { normalLine } from '../../../src/cli/words/argv.js'
import { testIo } from '../in-process.js'

const { io } = testIo()
const holdfast = await program(io)

/** Each command that runs by itself, by the words that name it. */
function commandsBelow(parent: Command, above: readonly string[] = []): [readonly string[], Command][] {
  return parent.commands.flatMap((command) => {
    const path = [...above, command.name()]
    return [[path, command] as [readonly string[], Command], ...commandsBelow(command, path)]
  })
}

const all = commandsBelow(holdfast)
const words = (argv: readonly string[]) => normalLine(argv, holdfast)
const isVerbosity = ({ long }: Option) => long === '--v'
const takesValue = (option: Option) => option.required && !isVerbosity(option)
const takesNone = ({ required, optional }: Option) => !required && !optional
const named = ({ short, long }: Option) => [short, long].filter((name) => name !== undefined)

await t.test('each flag of each command is the same in all forms', async (t) => {
  let forms = 0
  const same = (typed: readonly string[], plain: readonly string[]) => {
    forms++
    const read = words(typed)
    if (read.join(' ') !== plain.join(' ')) t.same(read, plain, typed.join(' '))
  }
  for (const [path, { options }] of all) {
    for (const option of options) {
      for (const flag of named(option)) {
        const long = flag.startsWith('--')
        if (takesValue(option)) {
          for (const value of ['x', '', '-x', 'a=b', path.at(-1) ?? '']) {
            same([...path, flag, value], [...path, flag, value])
            same([...path, `${flag}=${value}`], long ? [...path, `${flag}=${value}`] : [...path, flag, value])
            same([flag, value, ...path, 'arg'], [...path, flag, value, 'arg'])
            same([...path.slice(0, 1), flag, value, ...path.slice(1), 'arg'], [...path, flag, value, 'arg'])
          }
          if (!long) same([...path, `${flag}x`], [...path, `${flag}x`])
        } else if (takesNone(option)) {
          same([flag, ...path, 'arg'], [...path, flag, 'arg'])
          same([...path, '--', `${flag}=false`], [...path, '--', `${flag}=false`])
        } else if (isVerbosity(option)) {
          for (const form of [[flag], [`${flag}=4`], [flag, '4']]) {
            same([...path, ...form, 'arg'], [...path, '--v=4', 'arg'])
            same([...form, ...path, 'arg'], [...path, '--v=4', 'arg'])
          }
        }
      }
    }
  }
  t.ok(forms > 3000, `${forms} forms`)
})

await t.test('a line that names no command, or a flag that its command lacks, stays as it is', async (t) => {
  for (const line of [
    [],
    ['--help'],
    ['--version', 'status'],
    ['--bogus', 'status'],
    ['--config'],
    ['--config', 'status'],
    ['help', 'fleet', 'wait'],
    ['status', '--bogus=x', '-wq', '-', 'sync'],
  ])
    t.same(words(line), line, line.join(' '))
  t.same(words(['--config', 'status', 'status']), ['status', '--config', 'status'])
  t.same(words(['--help', 'fleet', 'wait']), ['fleet', 'wait', '--help'])
})
