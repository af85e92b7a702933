import { Catalog } from '../objects/files/catalog.js'
import { FileError, fileError } from '../objects/files/error.js'
import { lookAt } from '../objects/files/look.js'
import { readObjectFile } from '../objects/files/read-file.js'
import { describeReference, type ObjectReference } from '../objects/types.js'
import { silent } from '../log.js'
import { listed } from '../listed.js'
import { fault, ok, warn, type CheckResult } from './findings.js'

export interface DesiredReference {
  readonly reference: ObjectReference
  readonly optional: boolean
}

/** Whether the files can be read and parsed, and hold what the configuration names. Read once, as the agent reads them. */
export async function checkFiles(
  directory: string,
  defaultNamespace: string,
  desired: readonly DesiredReference[],
): Promise<CheckResult[]> {
  let stamps
  try {
    stamps = (await lookAt(directory)).stamps
  } catch (error) {
    return [fault('files', fileError(directory, error).message, 'make it readable, or correct source.files.path')]
  }
  const catalog = new Catalog()
  const results: CheckResult[] = []
  for (const [name, stamp] of stamps) {
    try {
      const objects = await readObjectFile(directory, name, stamp, { defaultNamespace, log: silent })
      if (objects === undefined) results.push(warn('files', `${name} is being written`, 'check again'))
      else catalog.set(name, { stamp: stamp.id, objects, error: undefined })
    } catch (error) {
      if (!(error instanceof FileError)) throw error
      results.push(fault('files', error.message, 'correct the file'))
      catalog.set(name, { stamp: stamp.id, objects: [], error })
    }
  }
  const good = stamps.size - results.length
  if (results.length === 0) results.push(ok('files', `${good} can be read and parsed`))
  return [...results, ...checkObject(catalog, desired)]
}

function checkObject(catalog: Catalog, desired: readonly DesiredReference[]): CheckResult[] {
  const results: CheckResult[] = []
  const there: string[] = []
  for (const { reference, optional } of desired) {
    const name = describeReference(reference)
    const { observation } = catalog.answer(reference, undefined)
    if (observation.state === 'present') there.push(name)
    else if (observation.state === 'unknown') results.push(fault('objects', observation.message, 'correct the files'))
    else if (optional) there.push(`${name} (optional, absent)`)
    else {
      const advice = 'add it: the directories that need it are not published before'
      results.push(warn('objects', `${name} is in none of the files`, advice))
    }
  }
  return there.length > 0 ? [ok('objects', listed(there)), ...results] : results
}
