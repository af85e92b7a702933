import { codeOf, messageOf } from '../errors.js'
import { NotPublished } from './exit-codes.js'
import { pathArgument } from './target.js'

/**
 * Refuses what an agent that runs here is configured to publish: it would publish it again at its next look. `advice`: what to do instead,
 * by its configuration's file. A status that is there must be readable; unless its directory was named, by those alone who have the right.
 */
export async function refuseConfigured(
  target: string,
  { stateDirectory: given }: { readonly stateDirectory?: string },
  advice: (file: string) => string,
): Promise<void> {
  const [{ sameTarget }, { readStatusFile }, { isAgentRunning }, { defaultStateDirectory }] = await Promise.all([
    import('../durable/index.js'),
    import('../agent/status-file.js'),
    import('../agent/state-lock.js'),
    import('../config/document.js'),
  ])
  const stateDirectory = given === undefined ? defaultStateDirectory : pathArgument(given)
  const status = await readStatusFile(stateDirectory).catch((error: unknown) => {
    // An agent's status is its user's alone: others go on removing what is theirs.
    if (given === undefined && codeOf(error) === 'EACCES') return undefined
    throw new NotPublished(`cannot tell whether an agent publishes ${target}: ${messageOf(error)}`, target)
  })
  const { agent, directories = [] } = status ?? {}
  const isDropped = (conditions: readonly { reason: string }[]) =>
    conditions.some(({ reason }) => reason === 'DropPending' || reason === 'Relocating')
  const named = directories.filter(({ conditions }) => !isDropped(conditions)).map(({ path }) => path)
  const found = !agent ? undefined : named.includes(target) ? target : await sameTarget(target, named)
  if (!agent || found === undefined || !(await isAgentRunning(stateDirectory, agent))) return
  const file = agent.configuration?.file ?? 'its configuration'
  throw new NotPublished(
    `the agent that runs here (process ${agent.pid}) publishes ${target}${found === target ? '' : ` as ${found}`}: ${advice(file)}`,
    target,
  )
}
