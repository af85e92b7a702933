import type { Log } from '../../../src/log.js'
import { ModelDisk } from '../../crash/model/model-disk.js'
import { ModelProcess } from '../../crash/model/model-process.js'
import { makeDirectory } from '../../crash/model/scenario.js'
import { type Call, type Fault, type Meanwhile, Recorder, TracedProcess } from './recorder.js'
import type { Scene } from './scene.js'

/** A scene that was played, with all that its rules look at. */
export interface Played {
  readonly scene: Scene
  readonly start: ModelDisk
  /** The disk afterwards. */
  readonly end: ModelDisk
  readonly calls: readonly Call[]
  readonly logged: readonly { readonly level: keyof Log; readonly message: string }[]
  /** The call's value, or its error. */
  readonly answer: { readonly value: unknown } | { readonly thrown: unknown }
  readonly user: ModelProcess['user']
  /** Descriptors that are open afterwards. */
  readonly open: number
  /** The injected failure, and the interruption. */
  readonly fault: Fault | undefined
  readonly meanwhile: Meanwhile | undefined
  /** It could be aborted, or began on another disk. */
  readonly signal: boolean
  /** The same without what failed or came between. */
  readonly undisturbed: Played | undefined
}

const disks = new Map<Scene, ModelDisk>()

/** A new disk for each play; `before` of a scene runs once. */
export async function diskFor(scene: Scene): Promise<ModelDisk> {
  const made = disks.get(scene)
  if (made) return made.fork()
  const disk = new ModelDisk()
  for (const path of ['/etc', '/etc/pki', '/etc/manifests']) makeDirectory(disk, path, 0o755)
  const left = await scene.before?.(disk, new ModelProcess(disk))
  const found = left instanceof ModelDisk ? left : disk
  found.syncAll()
  disks.set(scene, found)
  return found.fork()
}

export interface PlayOptions {
  readonly fault?: Fault
  readonly meanwhile?: Meanwhile
  readonly signal?: AbortSignal
  /** Default: as the scene begins. */
  readonly disk?: ModelDisk
  readonly undisturbed?: Played
}

export async function play(
  scene: Scene,
  { fault, meanwhile, signal, disk, undisturbed }: PlayOptions = {},
): Promise<Played> {
  const end = disk ?? (await diskFor(scene))
  const start = end.fork()
  const process = new TracedProcess(end)
  const recorder = new Recorder(process, fault, meanwhile)
  const logged: { level: keyof Log; message: string }[] = []
  const entry = (level: keyof Log) => (_: object, message: string) => void logged.push({ level, message })
  const log: Log = { debug: entry('debug'), info: entry('info'), warn: entry('warn'), error: entry('error') }
  const answer = await scene.run(recorder.fs, log, signal).then(
    (value) => ({ value }),
    (thrown: unknown) => ({ thrown }),
  )
  const { user, descriptors: open } = process
  return {
    scene,
    start,
    end,
    calls: recorder.calls,
    logged,
    answer,
    user,
    open,
    fault,
    meanwhile,
    undisturbed,
    signal: (signal ?? disk) !== undefined,
  }
}
