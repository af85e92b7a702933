/** The completion scripts, each asked by the shell that it is for. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { commands } from '../../../src/cli/program.js'
import { executable } from '../../project.js'
import { holdfast, scratch } from '../holdfast.js'

const names = [...Object.keys(commands), 'help'].sort()

const needs = (shell: string) => (spawnSync(shell, ['-c', 'true']).status === 0 ? {} : { skip: `needs ${shell}` })

/** Typed words, and the shell's offers: all of them, or some. Run in a directory that holds `cert.pem`. */
const cases: readonly { line: string; all?: readonly string[]; some?: readonly string[]; none?: readonly string[] }[] =
  [
    { line: 'holdfast ', all: names },
    { line: 'holdfast rep', all: ['replace'] },
    { line: 'holdfast sync --log-level ', all: ['debug', 'error', 'info', 'silent', 'warn'] },
    { line: 'holdfast write x --validate p', all: ['pem', 'pod'] },
    { line: 'holdfast rbac --dr', all: [] },
    { line: 'holdfast rbac install --conf', all: ['--configmaps'] },
    { line: 'holdfast write --keep', all: ['--keep-attributes'] },
    { line: 'holdfast prune -', some: ['--keep', '--dry-run', '--help'], none: ['--from'] },
    { line: 'holdfast install --', some: ['--revision'], none: ['--logtostderr'] },
    { line: 'holdfast completion ', all: ['bash', 'fish', 'zsh'] },
    { line: 'holdfast help mon', all: ['monitor'] },
    { line: 'holdfast write cer', all: ['cert.pem'] },
    { line: 'holdfast write x --from cer', all: ['cert.pem'] },
    { line: 'holdfast write x -- cer', all: ['cert.pem'] },
    { line: 'holdfast replace x --owner ', all: [] },
    { line: 'holdfast replace x --from=cer', some: ['cert.pem'] },
  ]

/** Each line's offers, by the shell. */
type Ask = (script: string, lines: readonly string[], directory: string) => string[][]

async function holds(t: Test, shell: 'bash' | 'zsh' | 'fish', ask: Ask): Promise<void> {
  const root = scratch(t)
  const directory = join(root, 'here')
  mkdirSync(directory)
  writeFileSync(join(directory, 'cert.pem'), '')
  const script = join(root, 'script')
  const start = `'${process.execPath}' '${executable}'`
  const asTyped = shell === 'fish' ? `function holdfast; ${start} $argv; end\n` : `holdfast() { ${start} "$@"; }\n`
  const { code, stdout, stderr } = await holdfast(['completion', shell])
  t.equal(code, 0, stderr)
  writeFileSync(script, asTyped + stdout)
  const offers = ask(
    script,
    cases.map(({ line }) => line),
    directory,
  )
  t.equal(offers.length, cases.length)
  for (const [index, { line, all, some = [], none = [] }] of cases.entries()) {
    // fish is told the whole word, the others what is behind the sign.
    const offered = [...new Set(offers[index]?.map((offer) => offer.replace(/^--\w+=/, '')))].sort()
    if (all) t.strictSame(offered, [...all].sort(), line)
    for (const word of some) t.ok(offered.includes(word), `${line}: ${word}`)
    for (const word of none) t.notOk(offered.includes(word), `${line}: not ${word}`)
  }
}

function run(t: Test, program: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: 'utf8', timeout: 120_000 })
  t.equal(status, 0, `${program}: ${stderr}`)
  return stdout
}

/** The offers of one line in a line, with a space between two. */
const perLine = (text: string): string[][] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((offers) => offers.split(' ').filter((word) => word !== ''))

await t.test('completion completes in bash', async (t) => {
  await holds(t, 'bash', (script, lines, directory) => {
    const asks = lines.map((line) => {
      const words = line
        .replace('=', ' = ')
        .split(' ')
        .map((word) => `'${word}'`)
      return `COMP_WORDS=(${words.join(' ')}) COMP_CWORD=${words.length - 1}; _holdfast; echo "\${COMPREPLY[*]}"`
    })
    return perLine(run(t, 'bash', ['--norc', '-c', `source ${script}\n${asks.join('\n')}`], directory))
  })
})

await t.test('bash sources the script from the program, which splits a flag from its value', async (t) => {
  const root = scratch(t)
  // As README has it: an alias.
  const script = `shopt -s expand_aliases; alias holdfast="'${process.execPath}' '${executable}'"
source <(holdfast completion bash); complete -p holdfast
COMP_WORDS=(holdfast sync --output = j) COMP_CWORD=4; _holdfast; echo "\${COMPREPLY[*]}"
COMP_WORDS=(holdfast sync --output =) COMP_CWORD=3; _holdfast; echo "\${COMPREPLY[*]}"`
  const [complete, one, all] = run(t, 'bash', ['--norc', '-c', script], root).split('\n')
  t.equal(complete, 'complete -F _holdfast holdfast')
  t.equal(one, 'json')
  t.match(all, /^text wide json yaml/)
})

/** Presses the tab key in a zsh on a separate terminal, and writes down the additions to the list. */
const harness = `
zmodload zsh/zpty
zpty asked zsh -f -i
zpty -w asked 'source '$1'; print READY-''NOW'
zpty -r -m asked discarded '*READY-NOW*'
for line in "\${@:2}"; do
  zpty -w -n asked $line$'\\t'
  zpty -r -m asked discarded '*ASKED-NOW*'
  zpty -w -n asked $'\\C-u'
done
zpty -d asked
`
const setup = (script: string, out: string) => `
PROMPT=
autoload -U compinit && compinit -D -u
source ${script}
compadd() {
  if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]]; then
    builtin compadd "$@"
    return
  fi
  local -a hits
  builtin compadd -A hits "$@"
  print -rn -- "$hits " >> ${out}
  builtin compadd "$@"
}
ask() {
  _main_complete
  compstate[insert]=
  compstate[list]=
  print >> ${out}
  print -n ASKED-NOW
}
zle -C ask complete-word ask
bindkey '^I' ask
`

await t.test('completion completes in zsh', needs('zsh'), async (t) => {
  const root = scratch(t)
  await holds(t, 'zsh', (script, lines, directory) => {
    const [start, out, outer] = [join(root, 'setup'), join(root, 'out'), join(root, 'harness')]
    writeFileSync(start, setup(script, out))
    writeFileSync(outer, harness)
    run(t, 'zsh', ['-f', outer, start, ...lines], directory)
    return perLine(run(t, 'cat', [out], directory))
  })
})

await t.test('completion completes in fish', needs('fish'), async (t) => {
  await holds(t, 'fish', (script, lines, directory) => {
    const asks = lines.map(
      (line) => `echo (complete --do-complete '${line}' | string split --fields 1 \\t | string join ' ')`,
    )
    const text = run(t, 'fish', ['--no-config', '-c', `source ${script}\n${asks.join('\n')}`], directory)
    return perLine(text)
  })
})
