import { command } from '../words/command.js'

/*
 * What each shell runs at its key: it asks `holdfast __complete` (complete.ts). Through `eval`, which knows the aliases of bash and zsh.
 */

const bash = `# bash completion for holdfast. For this shell: source <(holdfast completion bash)
_holdfast() {
  local offer current=\${COMP_WORDS[COMP_CWORD]}
  [[ $current == = ]] && current=''
  COMPREPLY=()
  while IFS= read -r offer; do
    if [[ $offer == :path ]]; then
      # Only while bash completes: it then adds the slash of a directory.
      compopt -o filenames 2> /dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
    else
      COMPREPLY+=("\${offer%%$'\\t'*}")
    fi
  done < <(eval 'holdfast __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}"' 2> /dev/null)
}
complete -F _holdfast holdfast
`

const zsh = `#compdef holdfast
# zsh completion for holdfast. For this shell: source <(holdfast completion zsh)
_holdfast() {
  local offer
  local -a offers items
  offers=("\${(@f)$(eval 'holdfast __complete -- "\${(@Q)words[2,CURRENT-1]}" "$PREFIX"' 2> /dev/null)}")
  for offer in $offers; do
    if [[ $offer == :path ]]; then
      compset -P '--*='
      _files
    else
      items+=("\${\${offer//:/\\\\:}/$'\\t'/:}")
    fi
  done
  _describe word items
}
compdef _holdfast holdfast

if [[ $funcstack[1] == _holdfast ]]; then
  _holdfast "$@"
fi
`

const fish = `# fish completion for holdfast. For this shell: holdfast completion fish | source
function __holdfast_offers --description 'What holdfast may be told next'
    set --local words (commandline --tokenize --cut-at-cursor --current-process)[2..]
    set --local current (commandline --current-token --cut-at-cursor)
    for offer in (holdfast __complete -- $words "$current" 2> /dev/null)
        if test "$offer" = :path
            set --local flag (string match --regex -- '^--[^=]*=' "$current")
            string replace --regex -- '^' "$flag" (__fish_complete_path (string replace -- "$flag" '' "$current"))
        else
            echo $offer
        end
    end
end
complete --command holdfast --no-files --arguments '(__holdfast_offers)'
`

const scripts = { bash, zsh, fish } as const

/** `holdfast completion SHELL` */
export const completionCommand = command({
  name: 'completion',
  summary: 'print the completion script of a shell',
  description: `Prints a script that completes commands, flags and their values in a shell.`,
  words: [['<shell>', 'the shell', Object.keys(scripts)]],
  examples: `  source <(holdfast completion bash)
  holdfast completion bash > /etc/bash_completion.d/holdfast
  holdfast completion zsh > /usr/local/share/zsh/site-functions/_holdfast
  holdfast completion fish > ~/.config/fish/completions/holdfast.fish`,
  exitCodes: `0 printed, 2 wrong usage.`,
  run: ({ io }, shell) => io.stdout.write(scripts[shell as keyof typeof scripts]),
})
