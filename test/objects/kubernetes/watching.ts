/** A KubernetesSource on its real client, against a model cluster. */
import { KubernetesSource } from '../../../src/objects/kubernetes/source.js'
import type { WatchTiming } from '../../../src/objects/kubernetes/timing.js'
import type { Log } from '../../../src/log.js'
import { Recorder } from '../recorder.js'
import { connectTo } from '../../kubernetes/connection/connected.js'
import { ModelCluster } from './model-cluster.js'

/**
 * Short delays between tries, which make no assertion depend on how fast the machine is. Limits on what the server does
 * keep their long defaults: a test that is about one of them sets it.
 */
export const shortTiming: Partial<WatchTiming> = {
  firstDelay: 20,
  longestDelay: 200,
  scoutDelay: 100,
  wakeSpread: 20,
  wakeInterval: 0,
  healthyAfter: 100,
  denialGrace: 200,
}

export interface Watching {
  readonly cluster: ModelCluster
  readonly recorder: Recorder
  readonly source: KubernetesSource
  /** Everything that was logged, as JSON lines. */
  readonly logged: string[]
}

interface Test {
  teardown(work: () => unknown): void
}

export async function startWatching(
  t: Test,
  timing: Partial<WatchTiming> = {},
  prepare: (cluster: ModelCluster) => void = () => undefined,
): Promise<Watching> {
  const cluster = new ModelCluster()
  prepare(cluster)
  await cluster.start()
  t.teardown(() => cluster.stop())
  const recorder = new Recorder()
  const logged: string[] = []
  const client = await connectTo(t, cluster.url)
  const source = new KubernetesSource(client, recorder, {
    timing: { ...shortTiming, ...timing },
    log: recordingLog(logged),
  })
  t.teardown(() => source.close())
  return { cluster, recorder, source, logged }
}

export function recordingLog(lines: string[]): Log {
  const add = (level: string) => (fields: object, message: string) => {
    lines.push(JSON.stringify({ level, ...fields, message }))
  }
  return { debug: add('debug'), info: add('info'), warn: add('warn'), error: add('error') }
}
