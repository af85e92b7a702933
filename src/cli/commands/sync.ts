import type { OnePassOptions } from '../../agent/one-pass.js'
import { Exit, exitCodeOfAll, exitCodes } from '../words/exit-codes.js'
import type { Io } from '../output/io.js'
import { loadTrusted } from '../content/load.js'
import { selected } from '../content/select.js'
import { createLogger } from '../output/logger.js'
import { print } from '../output/print.js'
import { ProgressLine, waitingFor } from '../output/progress.js'
import { interruptible } from '../signals.js'
import { version } from '../words/version.js'
import { command, flag } from '../words/command.js'
import type { FlagsOf } from '../words/types.js'
import {
  pathReportFlags,
  sourceFlags,
  configFlag,
  dryRunFlag,
  requireProvenFlag,
  releaseFlag,
  timeoutFlag,
  lockTimeoutFlag,
} from '../words/options.js'

const flags = [
  configFlag,
  timeoutFlag('how long to wait for the source', 60_000, '60s'),
  flag('--allow-stale', 'succeed without an answer of the source where the directory is intact by its record'),
  dryRunFlag,
  flag('--hooks', 'run the hooks too; a hook that fails makes the exit code 1, though its directory is published'),
  requireProvenFlag,
  releaseFlag,
  lockTimeoutFlag,
  ...sourceFlags,
  ...pathReportFlags,
]

type SyncFlags = FlagsOf<typeof flags>

/** `holdfast sync --config FILE` */
export const syncCommand = command({
  name: 'sync',
  summary: 'publish every configured directory once, then exit: for init containers',
  description: `Runs one pass: asks the source for all objects, publishes every directory that differs from them, and exits. It reads and
writes as the agent does, but leaves hooks to the agent unless --hooks is given.`,
  words: [['[path...]', 'only these directories of the configuration']],
  flags,
  examples: `  holdfast sync --config /etc/holdfast.yaml --timeout 60s
  holdfast sync --config /etc/holdfast.yaml --dry-run
  holdfast sync /etc/kubernetes/certs
  holdfast sync --config /etc/holdfast.yaml --allow-stale -o json`,
  exitCodes: `0 every directory is as asked, 1 at least one is not (and was not changed), or a hook failed that --hooks
asked for, 2 wrong usage or configuration, 3 published but not known to be durable, 75 another process holds a lock.`,
  run: ({ io, options }, paths) => runSync(io, paths, options),
})

async function runSync(io: Io, paths: readonly string[], options: SyncFlags): Promise<void> {
  const [
    { dryPass, onePass },
    { openSource },
    { passIdentity },
    { disableCoreDumps },
    { recordPass },
    { wasAborted, lineOf, lineText, errorsOf },
    { Trust },
  ] = await Promise.all([
    import('../../agent/one-pass.js'),
    import('../../agent/open-source.js'),
    import('../../agent/identity.js'),
    import('../../durable/index.js'),
    import('../../agent/report/last-pass.js'),
    import('../output/sync-lines.js'),
    import('../../trust.js'),
  ])
  disableCoreDumps()
  const log = createLogger(io, options)
  const trust = new Trust(log)
  const configuration = await loadTrusted(options, trust)
  const only = new Set(selected(configuration, paths).map(({ path }) => path))
  const progress = new ProgressLine(io.stderr)
  const lines = await interruptible(io, async (signal) => {
    const pass: OnePassOptions = {
      log,
      signal,
      only,
      timeout: options.timeout,
      lockTimeout: options.lockTimeout,
      requireProven: configuration.requireProven,
      release: options.release ?? false,
      agent: options.dryRun ? undefined : await passIdentity(configuration.stateDirectory),
      openSource: (listener) => openSource(configuration.source, listener, { log, version: version(), trust }),
      waiting: (references, source) => progress.start(waitingFor(references, source)),
    }
    const stale = options.allowStale === true
    try {
      if (options.dryRun) {
        const planned = await dryPass(configuration, pass)
        return planned.map(({ state, plan }) =>
          'notPlanned' in plan
            ? lineOf(state, plan.notPlanned, stale)
            : { path: state.path, ...plan, error: undefined },
        )
      }
      const hooks = options.hooks === true
      const passed = await onePass(configuration, { ...pass, hooks })
      const states = passed.filter(({ outcome }) => !wasAborted(outcome)).map(({ state }) => state)
      if (states.length > 0) await recordPass(configuration.stateDirectory, states, log)
      const lines = passed.map(({ state, outcome }) => lineOf(state, outcome, stale, hooks))
      // A signal that ended work early decides the exit code, unless a publication went through with unknown durability.
      const unknown = exitCodeOfAll(errorsOf(lines)) === exitCodes.durabilityUnknown
      if (!unknown && passed.some(({ outcome }) => wasAborted(outcome))) signal.throwIfAborted()
      return lines
    } finally {
      progress.stop()
    }
  })
  const dryRun = options.dryRun === true
  const document = { ...(dryRun && { dryRun }), directories: lines.map((line) => ({ ...line, error: undefined })) }
  await print(io.stdout, options.output, document, () => lines.map((line) => lineText(line, dryRun)).join(''))
  const code = exitCodeOfAll(errorsOf(lines))
  if (code !== 0) throw new Exit(code)
}
