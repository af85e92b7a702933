import { resolve } from 'node:path'
import type { Log } from '../log.js'
import type { ApiClient } from '../objects/kubernetes/client.js'
import { Disk } from '../durable/index.js'
import { monitor, type MonitorOutcome, type MonitorRequest } from '../static-pods/monitor.js'
import { checkAuthority } from '../static-pods/probe-url.js'
import { openProbe } from '../static-pods/probes.js'
import type { Probe } from '../static-pods/readiness.js'
import { Exit, exitCodes, UsageError } from './exit-codes.js'
import { interruptible } from './interruptible.js'
import { createLogger } from './logger.js'
import { logToFile } from './log-file.js'
import type { MonitorOptions } from './monitor.js'
import { openApi } from './open-api.js'
import { print, printJson } from './print.js'
import { tellInvalidInput } from './tell-invalid-input.js'
import { logLevelOf, nodeNameOf, requireFlags } from './static-pod-options.js'

export async function runMonitor(options: MonitorOptions): Promise<void> {
  const { revision, targetName, resourceDir, manifestsDir, installerLockFile } = options
  requireFlags({
    ...{ '--revision': revision, '--target-name': targetName },
    ...{ '--resource-dir': resourceDir, '--manifests-dir': manifestsDir },
  })
  const standard = createLogger(logLevelOf(options))
  const log = options.logFilePath ? logToFile(resolve(options.logFilePath), standard) : standard
  const { probes, api } = await openProbes(options, revision ?? 0, log)
  const request: MonitorRequest = {
    revision: revision ?? 0,
    target: targetName ?? '',
    resourceDirectory: resolve(resourceDir ?? ''),
    manifestDirectory: resolve(manifestsDir ?? ''),
    manifestLock: installerLockFile ? resolve(installerLockFile) : undefined,
    timeout: options.fallbackTimeoutDuration,
    probes,
    keepOwnManifest: options.keepOwnManifest === true,
  }
  let outcome: MonitorOutcome
  try {
    outcome = await interruptible((signal) => monitor(request, { disk: new Disk(), log, signal }))
  } finally {
    await api?.close()
  }
  if (options.output === 'json') printJson(outcome)
  else print(`${sentence(outcome)}\n`)
  if (outcome.outcome !== 'ready') throw new Exit(exitCodes.failed)
}

async function openProbes(
  options: MonitorOptions,
  revision: number,
  log: Log,
): Promise<{ probes: Probe[]; api: ApiClient | undefined }> {
  const { readyUrl = [], readyCa, readyExec = [], kubeconfig } = options
  const probes: Probe[] = [
    ...readyUrl.map((url) => openProbe({ kind: 'url', url, authority: readyCa && resolve(readyCa) })),
    ...readyExec.map((command) => openProbe({ kind: 'exec', command, revision })),
  ]
  if (readyCa !== undefined && !readyUrl.some(({ protocol }) => protocol === 'https:')) {
    throw new UsageError('--ready-ca is for a --ready-url with https, and there is none')
  }
  if (readyCa !== undefined) await tellInvalidInput(checkAuthority(resolve(readyCa)))
  if (!kubeconfig && probes.length === 0) {
    throw new UsageError('nothing says what ready means: --ready-url, --ready-exec or --kubeconfig is missing')
  }
  if (!kubeconfig) return { probes, api: undefined }
  const nodeName = nodeNameOf(options)
  requireFlags({ '--node-name (or NODE_NAME)': nodeName })
  const { api } = await openApi(options, log)
  const namespace = options.namespace ?? api.defaultNamespace ?? 'default'
  const mirrorPod = openProbe({ kind: 'mirror-pod', api, nodeName: nodeName ?? '', revision, namespace })
  return { probes: [...probes, mirrorPod], api }
}

function sentence(outcome: MonitorOutcome): string {
  const { revision } = outcome
  switch (outcome.outcome) {
    case 'ready':
      return `revision ${revision} is ready, and recorded as the last known good one`
    case 'fell-back':
      return `revision ${revision} did not become ready: fell back to revision ${outcome.to} (${outcome.message})`
    case 'nothing-to-fall-back-to':
      return `revision ${revision} did not become ready, and there is none to fall back to (${outcome.message})`
    case 'not-installed':
      return `revision ${revision} is not installed (${outcome.message})`
    case 'unknown':
      return `whether revision ${revision} is ready could not be asked, and it stays (${outcome.message})`
    case 'not-recorded':
      return `revision ${revision} is not recorded (${outcome.message})`
  }
}
