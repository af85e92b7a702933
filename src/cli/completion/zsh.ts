import type { CommandNode, Word } from './tree.js'

/** A completion function for zsh, sourced or autoloaded as `_holdfast`. */
export function zshCompletion(nodes: readonly CommandNode[]): string {
  const steps = nodes.filter(({ path }) => path !== '').map(({ path }) => quote(path.replace(/ ?(\S+)$/, ':$1')))
  return `#compdef holdfast
# zsh completion for holdfast. For this shell: source <(holdfast completion zsh)
compdef _holdfast holdfast

_holdfast() {
  local command='' previous=$words[CURRENT-1] word
  local -a items
  integer index
  for ((index = 2; index < CURRENT; index++)); do
    word=$words[index]
    if [[ $word == -- ]]; then
      _files
      return
    fi
    case $command:$word in
      (${steps.join('|')}) command=\${command:+$command }$word ;;
    esac
  done
  if [[ $PREFIX == --*=* ]]; then
    previous=\${PREFIX%%=*}
    compset -P '*='
  fi
  case $command:$previous in
${nodes.flatMap(valueCases).join('\n')}
  esac
  case $command:$PREFIX in
${nodes.map(flagCase).join('\n')}
  esac
  case $command in
${nodes.flatMap(wordCase).join('\n')}
  esac
}

if [[ $funcstack[1] == _holdfast ]]; then
  _holdfast "$@"
fi
`
}

function valueCases({ path, flags }: CommandNode): string[] {
  return flags.flatMap(({ names, value }) => {
    if (value === 'none') return []
    const patterns = names.map((name) => quote(`${path}:${name}`)).join('|')
    return [`    (${patterns}) ${completionOf(value)}return ;;`]
  })
}

function completionOf(value: 'path' | 'text' | readonly string[]): string {
  if (value === 'text') return ''
  return value === 'path' ? '_files; ' : `compadd -- ${value.map(quote).join(' ')}; `
}

function flagCase({ path, flags }: CommandNode): string {
  const items = flags.flatMap(({ names, description }) => names.map((word) => ({ word, description })))
  return `    (${quote(`${path}:-`)}*) items=(${items.map(describe).join(' ')}); _describe -o flag items; return ;;`
}

function wordCase({ path, words, takesPath }: CommandNode): string[] {
  if (words.length > 0)
    return [`    (${quote(path)}) items=(${words.map(describe).join(' ')}); _describe word items ;;`]
  return takesPath ? [`    (${quote(path)}) _files ;;`] : []
}

function describe({ word, description }: Word): string {
  return quote(description === '' ? word : `${word}:${description}`)
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}
