import { resolve } from 'node:path'
import { Disk } from '../durable/index.js'
import { manifestDirectoryOf } from '../static-pods/manifest-directory.js'
import { prune, type PruneLine } from '../static-pods/prune.js'
import { Exit, exitCodes, UsageError } from './exit-codes.js'
import { interruptible } from './interruptible.js'
import { createLogger } from './logger.js'
import { print, printJson } from './print.js'
import type { PruneOptions } from './prune.js'
import { logLevelOf, requireFlags } from './static-pod-options.js'
import { table } from './table.js'
import { tellInvalidInput } from './tell-invalid-input.js'

export async function runPrune(options: PruneOptions): Promise<void> {
  const { resourceDir, staticPodName, podManifestDir, maxEligibleRevision, keep, protectedRevisions } = options
  requireFlags({ '--resource-dir': resourceDir, '--static-pod-name': staticPodName })
  if (maxEligibleRevision === undefined && keep === undefined) {
    throw new UsageError('--max-eligible-revision or --keep is missing: one has to say what may go')
  }
  const resourceDirectory = resolve(resourceDir ?? '')
  const dryRun = options.dryRun === true
  const log = createLogger(logLevelOf(options))
  const named = podManifestDir ? resolve(podManifestDir) : undefined
  const manifestDirectory = await manifestDirectoryOf(named, resourceDirectory, log)
  const request = {
    ...{ resourceDirectory, manifestDirectory, dryRun },
    pod: staticPodName ?? '',
    maxEligible: maxEligibleRevision,
    protectedRevisions: protectedRevisions ?? [],
    keep: keep ?? 0,
    lockTimeout: options.lockTimeout,
  }
  const lines = await tellInvalidInput(interruptible((signal) => prune(request, new Disk(), log, signal)))
  if (options.output === 'json') printJson({ ...(dryRun && { dryRun }), revisions: lines })
  else if (lines.length === 0) print(`no revision of ${staticPodName ?? ''} in ${resourceDirectory}\n`)
  else print(table(lines.map((line) => row(line, dryRun))))
  if (lines.some(({ outcome }) => outcome === 'failed')) throw new Exit(exitCodes.failed)
}

function row({ outcome, path, why }: PruneLine, dry: boolean): string[] {
  return [dry && outcome === 'removed' ? 'would be removed' : outcome, path, why ?? '']
}
