import type { DurableCalls } from '../durable/index.js'
import type { Log } from '../log.js'
import { warnUnproven } from '../unproven.js'

/**
 * Those of these places where durability is not proven. `directory`: an existing directory whose mount decides for `path`.
 * @throws DurableWriteError where `requireProven` refuses that
 */
export async function unprovenPlaces(
  places: readonly { readonly path: string; readonly directory?: string }[],
  { durable, requireProven = false }: { readonly durable: DurableCalls; readonly requireProven?: boolean },
): Promise<string[]> {
  const unproven: string[] = []
  for (const { path, directory = path } of places) {
    if (await durable.isUnproven(path, directory, requireProven)) unproven.push(path)
  }
  return unproven
}

/** Warns of the unproven places; answers the field that tells of them in the printed document. */
export function warnOfUnproven(places: readonly string[], log: Log): { unproven?: true } {
  for (const path of places) warnUnproven(log, path)
  return places.length === 0 ? {} : { unproven: true }
}
