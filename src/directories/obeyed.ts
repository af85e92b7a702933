import type { AgentConfiguration } from '../config/types.js'
import { programPath } from '../program-path.js'
import type { Obeyed } from '../trust.js'
import { environment } from './hook-exec.js'

/** The files that a configuration has holdfast obey: itself, the kubeconfig, and the program of each command, but no file in its arguments. */
export async function obeyedBy({
  file,
  source,
  directories,
}: Pick<AgentConfiguration, 'file' | 'source' | 'directories'>): Promise<Obeyed[]> {
  const obeyed = new Map([[file, 'configuration']])
  if (source.type === 'kubernetes' && source.kubeconfig !== undefined) obeyed.set(source.kubeconfig, 'kubeconfig')
  for (const hook of directories.flatMap(({ beforePublish, afterPublish }) => [...beforePublish, ...afterPublish])) {
    if (hook.type !== 'exec') continue
    const program = await programPath(hook.command[0] ?? '', environment.PATH)
    if (program !== undefined) obeyed.set(program, `program of hook ${hook.name}`)
  }
  return [...obeyed].map(([path, what]) => ({ what, path }))
}
