import { sleep } from '../../deadline.js'
import type { AgentStatus } from '../../agent/report/status-file.js'
import { codeOf } from '../../errors.js'
import { UsageError } from '../words/exit-codes.js'
import { loadForLooking } from '../content/load.js'
import { print } from '../output/print.js'
import { interruptible } from '../signals.js'
import { command } from '../words/command.js'
import type { FlagsOf } from '../words/types.js'
import { reportFlags, configFlag, timeoutFlag } from '../words/options.js'

/** Milliseconds between looks at the status file. */
const lookInterval = 50

const flags = [configFlag, timeoutFlag('how long to wait for the agent', 30_000, '30s'), ...reportFlags]

type ReloadFlags = FlagsOf<typeof flags>

/** `holdfast reload [--config FILE]` */
export const reloadCommand = command({
  name: 'reload',
  summary: 'make the running agent read its configuration again',
  description: `Sends SIGHUP to the agent that keeps its state in the configured stateDirectory, and waits until it has put its configuration file in
force, or refused it. The agent is found by its status file; it must run in the same container, or both on the host.

Without --config, it is the agent with its state in /var/lib/holdfast.`,
  flags,
  examples: `  holdfast reload --config /etc/holdfast.yaml
  kubectl -n holdfast exec holdfast-x7k2p -- holdfast reload`,
  exitCodes: `0 the configuration is in force, 1 no agent runs, or it did not answer in time, 2 wrong usage or configuration.`,
  run: async ({ io, options }) => {
    const pid = await interruptible(io, (signal) => reload(options, signal))
    const text = () => `process ${pid} has put its configuration in force\n`
    await print(io.stdout, options.output, { pid, reloaded: true }, text)
  },
})

async function reload(options: ReloadFlags, signal: AbortSignal): Promise<number> {
  const [{ readAgentStatus }, { statusFileIn }] = await Promise.all([
    import('../../agent/report/read-status.js'),
    import('../../agent/report/status-file.js'),
  ])
  // A faulty file is reported here, with its places, and the agent hears nothing of it.
  const configuration = options.config === undefined ? undefined : await loadForLooking(options)
  const stateDirectory =
    configuration?.stateDirectory ?? (await import('../../config/document.js')).defaultStateDirectory
  const before = await readAgentStatus(stateDirectory)
  const agent = await running(before, statusFileIn(stateDirectory))
  try {
    process.kill(agent.pid, 'SIGHUP')
  } catch (error) {
    throw new Error(
      `cannot signal the agent, process ${agent.pid} (${codeOf(error) ?? 'unknown'}): run this as its user, or as root`,
    )
  }
  const deadline = performance.now() + options.timeout
  while (performance.now() < deadline) {
    await sleep(lookInterval, { signal })
    const now = await readAgentStatus(stateDirectory)
    if (now?.pid !== agent.pid || now.reloadedAt === undefined || now.reloadedAt === agent.reloadedAt) continue
    if (now.configurationInvalid === undefined) return agent.pid
    throw new UsageError(
      `the agent, process ${agent.pid}, keeps its previous configuration: ${now.configurationInvalid}`,
    )
  }
  throw new Error(
    `the agent, process ${agent.pid}, was asked and has not answered within ${options.timeout / 1000} s: see its log`,
  )
}

async function running(agent: AgentStatus | undefined, file: string): Promise<AgentStatus> {
  const { isRunning } = await import('../../agent/process-identity.js')
  const none = 'start it with "holdfast agent"'
  if (agent?.process === undefined) throw new Error(`no agent has written ${file}: ${none}`)
  const state = agent.stoppedAt === undefined && (await isRunning(agent.process))
  if (state === 'elsewhere') {
    throw new Error(
      `the agent of ${file} runs in another pid namespace: run this in its container, or where the agent runs`,
    )
  }
  if (!state) throw new Error(`the agent that wrote ${file} runs no more (process ${agent.pid}): ${none}`)
  return agent
}
