/*
 * What callers without a type checker may get wrong: a misspelt option would be the default, and a Map would be a
 * directory without files.
 */

export const directoryFields = ['files', 'mode', 'fileMode', 'owner']
export const fileFields = ['mode', 'owner']

/** The fields that are set, and only those that are known. Throws TypeError, which names the first unknown one. */
export function checkFields<T extends object>(place: string, value: T, known: readonly string[]): T {
  if (!isPlainObject(value)) throw new TypeError(`${place} must be an object`)
  const unknown = Object.keys(value).find((field) => !known.includes(field))
  if (unknown !== undefined) {
    throw new TypeError(`${place}.${unknown} is not a known option; known are ${known.join(', ')}`)
  }
  if ('files' in value) checkFiles(`${place}.files`, value.files)
  if ('owner' in value && value.owner !== undefined) checkOwner(`${place}.owner`, value.owner)
  const empty = Object.entries(value).find(([, field]) => field === null)
  if (empty !== undefined) throw new TypeError(`${place}.${empty[0]} must not be null`)
  // An option that is undefined is an option that is not given.
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as T
}

function checkOwner(place: string, owner: unknown): void {
  if (!isPlainObject(owner)) throw new TypeError(`${place} must be { uid, gid }, two numbers`)
  checkFields(place, owner, ['uid', 'gid'])
}

function checkFiles(place: string, files: unknown): void {
  if (!isPlainObject(files)) throw new TypeError(`${place} must be a plain object: relative path to content`)
  for (const [path, value] of Object.entries(files)) {
    if (typeof value === 'string' || value instanceof Uint8Array) continue
    if (isPlainObject(value)) checkFields(`${place}[${JSON.stringify(path)}]`, value, ['content', 'mode'])
    else {
      throw new TypeError(`${place}[${JSON.stringify(path)}] must be a string, a Uint8Array, or { content, mode }`)
    }
  }
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}
