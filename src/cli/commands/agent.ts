import { fingerprint } from '../../regular-file.js'
import { Exit, exitCodeAfter, exitCodes } from '../words/exit-codes.js'
import type { Io } from '../output/io.js'
import { loadTrusted, nodeName } from '../content/load.js'
import { createLogger } from '../output/logger.js'
import { parseListen } from '../words/option-values.js'
import { Ending } from '../signals.js'
import { version } from '../words/version.js'
import { command, flag } from '../words/command.js'
import type { FlagsOf } from '../words/types.js'
import { daemonLogFlags, sourceFlags, configFlag, agentRequireProvenFlag } from '../words/options.js'

const flags = [
  configFlag,
  flag('--listen <address:port>', 'serve /livez, /readyz and /metrics here instead of server.address', {
    parse: parseListen,
    env: 'HOLDFAST_LISTEN',
  }),
  ...sourceFlags,
  agentRequireProvenFlag,
  ...daemonLogFlags,
]

type AgentFlags = FlagsOf<typeof flags>

/** `holdfast agent --config FILE` */
export const agentCommand = command({
  name: 'agent',
  summary: 'keep the configured directories as their source says, until stopped',
  description: `Runs as a daemon: keeps each configured directory as its Secrets and ConfigMaps say, intact and durable, and repairs what
other programs change in it. Logs go to standard error, state to the configured stateDirectory.

SIGHUP: reads the configuration again (reports an invalid one and keeps the old one in force) and compares the disk.
SIGTERM: finishes or aborts what is in flight, leaves every target intact, and ends with 0.`,
  flags,
  examples: `  holdfast agent --config /etc/holdfast.yaml
  HOLDFAST_CONFIG=/etc/holdfast.yaml NODE_NAME=node-1 holdfast agent --log-level debug
  kill -HUP PID`,
  exitCodes: `0 after SIGTERM, 1 could not start, or its stateDirectory was taken away, 2 wrong usage or configuration, 75 another
agent has the stateDirectory, 128+N ended by another signal.`,
  run: ({ io, options }) => runAgent(io, options),
})

/** Runs the agent until a signal ends it. Throws Exit with the signal's code, unless it was an orderly SIGTERM. */
async function runAgent(io: Io, options: AgentFlags): Promise<void> {
  const [{ Daemon }, { notifyTarget }, { openSource }, { reapOrphans }, { disableCoreDumps }, { Trust }] =
    await Promise.all([
      import('../../agent/daemon.js'),
      import('../../agent/notify-systemd.js'),
      import('../../agent/open-source.js'),
      import('../../agent/orphans.js'),
      import('../../durable/index.js'),
      import('../../trust.js'),
    ])
  disableCoreDumps()
  reapOrphans()
  const node = nodeName(options, io.env)
  const log = createLogger(io, options, node === '' ? {} : { node })
  const ending = new Ending(io, log)
  io.events.on('uncaughtException', (error: Error) => {
    log.error({ stack: error.stack }, `an internal error of holdfast: ${error.message}`)
    io.exit(1)
  })
  // A SIGHUP during the start waits until the agent runs; once the agent ends, it reads nothing any more.
  const early = { hangUps: 0 }
  let reload = () => void (early.hangUps += 1)
  // Stays to the very end: a SIGHUP that comes late must not end in another way what ends in order.
  io.events.on('SIGHUP', () => reload())
  // The fingerprint comes first: a change during the read makes the agent read the file again.
  const seen = await fingerprint(options.config ?? '')
  const trust = new Trust(log)
  const load = () => loadTrusted(options, trust)
  const configuration = await load()
  // A signal at the very start may have opened it only now.
  io.closeInspector()
  const daemon = await Daemon.start({
    configuration,
    fingerprint: seen,
    load,
    openSource: (source, listener) => openSource(source, listener, { log, version: version(), trust }),
    log,
    version: version(),
    node,
    notify: notifyTarget(io.env, process.pid),
  })
  reload = () => void daemon.reload()
  if (early.hangUps > 0) reload()
  const signal = await Promise.race([ending.signal, daemon.lost])
  reload = () => {}
  const directories = await daemon.stop()
  if (directories.length > 0) {
    const message = `${signal ?? 'its lock is lost'}: the agent ends without ${directories.join(', ')}: a thread that waits in the kernel for the disk keeps this process, its locks and its pod until the disk answers`
    log.error({ reason: 'Stalled', signal, directories }, message)
    io.raise(signal ?? 'SIGTERM')
    return
  }
  ending.release()
  if (signal === undefined) throw new Exit(exitCodes.failed)
  log.info({ signal }, `the agent ended in order after ${signal}`)
  if (signal !== 'SIGTERM') throw new Exit(exitCodeAfter(signal))
}
