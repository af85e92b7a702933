import type { CommandNode, Flag } from './tree.js'

/** Completions for fish. */
export function fishCompletion(nodes: readonly CommandNode[]): string {
  const steps = nodes.filter(({ path }) => path !== '').map(({ path }) => quote(path.replace(/ ?(\S+)$/, ':$1')))
  return `# fish completion for holdfast. For this shell: holdfast completion fish | source
function __holdfast_at --description 'Whether this is the command so far'
    set --local command ''
    for word in (commandline --tokenize --cut-at-cursor --current-process)[2..]
        switch "$command:$word"
            case '*:--'
                set command --
                break
            case ${steps.join(' ')}
                set command (string trim -- "$command $word")
        end
    end
    test "$command" = "$argv"
end

complete --command holdfast --no-files
complete --command holdfast --condition '__holdfast_at --' --force-files
${nodes.flatMap(linesFor).join('\n')}
`
}

function linesFor({ path, words, takesPath, flags }: CommandNode): string[] {
  const at = `complete --command holdfast --condition ${quote(`__holdfast_at ${path}`.trim())}`
  return [
    ...(takesPath ? [`${at} --force-files`] : []),
    ...words.map(({ word, description }) => `${at} --arguments ${quote(word)}${described(description)}`),
    ...flags.map((flag) => `${at}${namesOf(flag)}${valueOf(flag)}${described(flag.description)}`),
  ]
}

function namesOf({ names }: Flag): string {
  return names
    .map((name) => (name.startsWith('--') ? ` --long-option ${name.slice(2)}` : ` --short-option ${name.slice(1)}`))
    .join('')
}

function valueOf({ value }: Flag): string {
  if (value === 'none') return ''
  if (value === 'path') return ' --require-parameter --force-files'
  return value === 'text' ? ' --exclusive' : ` --exclusive --arguments ${quote(value.join(' '))}`
}

function described(description: string): string {
  return description === '' ? '' : ` --description ${quote(description)}`
}

function quote(text: string): string {
  return `'${text.replace(/[\\']/g, String.raw`\$&`)}'`
}
