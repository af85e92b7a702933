import type { desiredContents } from '../../agent/one-pass.js'
import type { AgentConfiguration, DirectoryConfiguration } from '../../config/types.js'
import type { Io } from '../output/io.js'
import { loadTrusted } from './load.js'
import { configuredDirectory } from './select.js'
import { createLogger } from '../output/logger.js'
import type { OutputFlags, SourceFlags } from '../words/options.js'
import { ProgressLine, waitingFor } from '../output/progress.js'
import { version } from '../words/version.js'

/* Asks the source for the content of one configured directory, for the commands that name it. */

interface AskFlags extends SourceFlags, OutputFlags {
  readonly config?: string
  /** Milliseconds to wait for the source. */
  readonly timeout: number
}

export interface AskContext {
  readonly io: Io
  readonly options: AskFlags
  readonly signal: AbortSignal
  /** Where the configuration names no kubeconfig, that of the person's shell serves. */
  readonly asPerson?: true
  /** Advice for a path outside the configuration, beside naming a configured one. */
  readonly otherwise?: string
  /** Turns the configured directory into the one to ask for; default: as it stands. */
  readonly as?: (directory: DirectoryConfiguration) => DirectoryConfiguration
}

export type Asked = Exclude<Awaited<ReturnType<typeof desiredContents>>[number], { notPlanned: unknown }> & {
  readonly configuration: AgentConfiguration
  readonly directory: DirectoryConfiguration
}

/** @throws where the source does not tell the directory's content: the command then compares and writes nothing */
export async function askSource(target: string, context: AskContext): Promise<Asked> {
  const { io, options, signal, otherwise } = context
  const log = createLogger(io, options)
  const { Trust } = await import('../../trust.js')
  const trust = new Trust(log)
  const configuration = await loadTrusted(context.asPerson ? { ...options, search: 'kubectl' } : options, trust)
  const configured = configuredDirectory(configuration, target, otherwise)
  const [{ desiredContents }, { openSource }, { silent }] = await Promise.all([
    import('../../agent/one-pass.js'),
    import('../../agent/open-source.js'),
    import('../../log.js'),
  ])
  const directory = context.as?.(configured) ?? configured
  const progress = new ProgressLine(io.stderr)
  try {
    const [desired] = await desiredContents(
      { ...configuration, directories: [directory] },
      {
        // That the disk differs is the answer, and no news.
        log: silent,
        signal,
        timeout: options.timeout,
        openSource: (listener) => openSource(configuration.source, listener, { log, version: version(), trust }),
        waiting: (references, source) => progress.start(waitingFor(references, source)),
      },
    )
    if (desired === undefined) throw new Error('no directory was rendered')
    if (!('notPlanned' in desired)) return { ...desired, configuration, directory }
    const { explanation, notPlanned } = await import('../output/sync-lines.js')
    const why = explanation(desired.notPlanned) ?? 'the source did not answer'
    throw notPlanned(desired.notPlanned, `what ${target} must hold is not known: ${why}`)
  } finally {
    progress.stop()
  }
}
