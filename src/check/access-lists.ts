import { standing } from '../durable/index.js'
import type { Descriptor, FileSystem } from '../durable/file-system.js'
import { codeOf, messageOf } from '../errors.js'
import { listed } from '../listed.js'
import { adviceOn, warn, type CheckResult } from './findings.js'

/** Private files that others may use all the same, by an ACL: holdfast keeps it at each publication. Nothing where there are none. */
export async function checkAccessLists(fs: FileSystem, target: Descriptor, path: string): Promise<CheckResult[]> {
  try {
    const opened = await standing.openedByLists(fs, target)
    const [first] = opened
    if (first === undefined) return []
    const shown = opened.map(({ path: file, named }) => `${file} (${named.join(', ')})`)
    return [
      warn(
        'acl',
        `an ACL opens files that their mode keeps private: ${listed(shown, 3)}`,
        `holdfast keeps ACLs; if it is not meant, take it away with setfacl -b, as of ${path}/${first.path}`,
      ),
    ]
  } catch (error) {
    return [warn('acl', `could not read the ACLs: ${messageOf(error)}`, adviceOn(codeOf(error) ?? ''))]
  }
}
