import type { CommandNode } from './tree.js'

/** A completion function for bash 4 and above. */
export function bashCompletion(nodes: readonly CommandNode[]): string {
  const steps = nodes.filter(({ path }) => path !== '').map(({ path }) => pattern(path.replace(/ ?(\S+)$/, ':$1')))
  return `# bash completion for holdfast. For this shell: source <(holdfast completion bash)
_holdfast_words() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current")
}

_holdfast_paths() {
  # Only while bash completes: it then adds the slash of a directory.
  compopt -o filenames 2> /dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$current")
}

_holdfast() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} command='' index word
  COMPREPLY=()
  # bash takes --flag=value for three words.
  if [[ $current == = ]]; then
    current=''
  elif [[ $previous == = ]]; then
    previous=\${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((index = 1; index < COMP_CWORD; index++)); do
    word=\${COMP_WORDS[index]}
    if [[ $word == -- ]]; then
      _holdfast_paths
      return
    fi
    case $command:$word in
      ${steps.join(' | ')}) command=\${command:+$command }$word ;;
    esac
  done
  case $command:$previous in
${nodes.flatMap(valueCases).join('\n')}
  esac
  case $command:$current in
${nodes.map(flagCase).join('\n')}
  esac
  case $command in
${nodes.flatMap(wordCase).join('\n')}
  esac
}

complete -F _holdfast holdfast
`
}

function valueCases({ path, flags }: CommandNode): string[] {
  return flags.flatMap(({ names, value }) => {
    if (value === 'none') return []
    const patterns = names.map((name) => pattern(`${path}:${name}`)).join(' | ')
    return [`    ${patterns}) ${completionOf(value)}return ;;`]
  })
}

function completionOf(value: 'path' | 'text' | readonly string[]): string {
  if (value === 'text') return ''
  return value === 'path' ? '_holdfast_paths; ' : `_holdfast_words ${quote(value.join(' '))}; `
}

function flagCase({ path, flags }: CommandNode): string {
  const names = flags.flatMap((flag) => flag.names)
  return `    ${pattern(`${path}:-`)}*) _holdfast_words ${quote(names.join(' '))}; return ;;`
}

function wordCase({ path, words, takesPath }: CommandNode): string[] {
  if (words.length > 0)
    return [`    ${pattern(path)}) _holdfast_words ${quote(words.map(({ word }) => word).join(' '))} ;;`]
  return takesPath ? [`    ${pattern(path)}) _holdfast_paths ;;`] : []
}

const pattern = quote

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}
