import { Argument, Command } from 'commander'
import type { CommandNode } from '../completion/tree.js'
import type { Io } from '../output/io.js'

const shells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof shells)[number]

const scripts = {
  bash: async () => (await import('../completion/bash.js')).bashCompletion,
  zsh: async () => (await import('../completion/zsh.js')).zshCompletion,
  fish: async () => (await import('../completion/fish.js')).fishCompletion,
} satisfies Record<Shell, () => Promise<(nodes: readonly CommandNode[]) => string>>

/** `holdfast completion SHELL` */
export function completionCommand({ stdout }: Io): Command {
  const completion = new Command('completion')
  return completion
    .summary('print the completion script of a shell')
    .description(`Prints a script that completes commands, flags and their values in a shell.`)
    .addArgument(new Argument('<shell>', 'the shell').choices(shells))
    .addHelpText(
      'after',
      `
Examples:
  source <(holdfast completion bash)
  holdfast completion bash > /etc/bash_completion.d/holdfast
  holdfast completion zsh > /usr/local/share/zsh/site-functions/_holdfast
  holdfast completion fish > ~/.config/fish/completions/holdfast.fish

Exit codes: 0 printed, 2 wrong usage.`,
    )
    .action(async (shell: Shell) => {
      const { completionTree } = await import('../completion/tree.js')
      const script = await scripts[shell]()
      stdout.write(script(completionTree(completion.parent ?? completion)))
    })
}
