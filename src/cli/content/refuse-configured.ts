import { codeOf, messageOf } from '../../errors.js'
import { NotPublished } from '../words/exit-codes.js'
import { pathArgument } from '../words/target.js'

/**
 * Refuses the target of an agent that runs here: the agent would publish it again at its next look. `advice`: what to do instead,
 * by its configuration's file. An existing status must be readable; unless its directory was named, by those alone who have the right.
 */
export async function refuseConfigured(
  target: string,
  { stateDirectory: given }: { readonly stateDirectory?: string },
  advice: (file: string) => string,
): Promise<void> {
  const [{ sameTarget }, { readStatusFile }, { isAgentRunning }, { defaultStateDirectory }] = await Promise.all([
    import('../../durable/index.js'),
    import('../../agent/report/read-status.js'),
    import('../../agent/state-lock.js'),
    import('../../config/document.js'),
  ])
  const stateDirectory = given === undefined ? defaultStateDirectory : pathArgument(given)
  const status = await readStatusFile(stateDirectory).catch((error: unknown) => {
    // Only the agent's user may read its status: other users go on removing their own targets.
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

/**
 * Refuses a target of an agent that keeps its state elsewhere: it may run, and this command cannot tell. `keeper`: that agent, by the
 * record; undefined: it names none.
 */
export async function refuseOthers(
  target: string,
  keeper: string | undefined,
  given: string | undefined,
): Promise<void> {
  if (keeper === undefined) return
  const [{ readIdentity }, { defaultStateDirectory }] = await Promise.all([
    import('../../agent/identity.js'),
    import('../../config/document.js'),
  ])
  const stateDirectory = given === undefined ? defaultStateDirectory : pathArgument(given)
  if ((await readIdentity(stateDirectory).catch(() => undefined)) === keeper) return
  throw new NotPublished(
    `an agent has published ${target} that does not keep its state in ${stateDirectory}`,
    target,
    `holdfast left ${target} as it was; name its state directory (--state-directory), take the directory out of its configuration, or, if no agent publishes it any more, use --force`,
  )
}
