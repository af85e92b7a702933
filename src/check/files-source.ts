import { listed, objectName } from '../message-text.js'
import { Catalog } from '../objects/files/catalog.js'
import { FileError, fileError } from '../objects/files/error.js'
import { scanDirectory } from '../objects/files/directory-scan.js'
import { readObjectFile } from '../objects/files/objects.js'
import type { ObjectReference } from '../objects/types.js'
import { silent } from '../log.js'
import { fault, ok, warn, type CheckResult } from './findings.js'

export interface DesiredReference {
  readonly reference: ObjectReference
  readonly optional: boolean
}

/** Whether the files can be read and parsed, and hold what the configuration names. Read once, as the agent reads them. */
export async function checkFilesSource(
  directory: string,
  defaultNamespace: string,
  desired: readonly DesiredReference[],
): Promise<CheckResult[]> {
  let scan
  try {
    scan = await scanDirectory(directory)
  } catch (error) {
    return [
      fault('files', fileError(directory, error).message, 'make the directory readable, or correct source.files.path'),
    ]
  }
  const { stamps } = scan
  const passedOver = [...scan.passedOver]
  const catalog = new Catalog()
  const results: CheckResult[] = []
  for (const [name, stamp] of stamps) {
    try {
      const noteKind = (fields: object): void => {
        if ('kind' in fields) passedOver.push(`${String(fields.kind)} in ${name}`)
      }
      const objects = await readObjectFile(directory, name, stamp, {
        defaultNamespace,
        log: { ...silent, debug: noteKind },
      })
      if (objects === undefined)
        results.push(warn('files', `another program is still writing ${name}`, 'check again when it is done'))
      else catalog.set(name, { stamp: stamp.id, objects, error: undefined })
    } catch (error) {
      if (!(error instanceof FileError)) throw error
      results.push(fault('files', error.message, 'correct the file'))
      catalog.set(name, { stamp: stamp.id, objects: [], error })
    }
  }
  if (results.length === 0) results.push(foundIn(stamps.size, [...new Set(passedOver)]))
  return [...results, ...checkObject(catalog, desired)]
}

/** Counts the files that the agent reads, and names those that it passes over. */
function foundIn(files: number, passedOver: readonly string[]): CheckResult {
  const readable = `${files === 1 ? '1 file' : `${files} files`}, readable and valid`
  const rest = passedOver.length === 0 ? '' : `; not read: ${listed(passedOver)}`
  if (files > 0) return ok('files', `${readable}${rest}`)
  return warn(
    'files',
    `no file there is one that the agent reads${rest}`,
    'put Secrets and ConfigMaps there, in files whose names end with .yaml, .yml or .json',
  )
}

function checkObject(catalog: Catalog, desired: readonly DesiredReference[]): CheckResult[] {
  const results: CheckResult[] = []
  const there: string[] = []
  for (const { reference, optional } of desired) {
    const name = objectName(reference)
    const { observation } = catalog.answer(reference, undefined)
    if (observation.state === 'present') there.push(name)
    else if (observation.state === 'selected' && observation.names.length > 0) {
      there.push(`${name}: ${listed(observation.names)}`)
    } else if (observation.state === 'unknown') results.push(fault('objects', observation.message, 'correct that file'))
    else if (optional) there.push(`${name} (optional, absent)`)
    else {
      const advice = 'add it: until then, the agent does not publish the directories that need it'
      const lacks = reference.selector === undefined ? `no file holds ${name}` : `no file holds an object for ${name}`
      results.push(warn('objects', lacks, advice))
    }
  }
  return there.length > 0 ? [ok('objects', listed(there)), ...results] : results
}
