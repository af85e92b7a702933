import { readKey } from './object-names.js'
import { readFileMode } from './ownership.js'
import { readInnerPath } from './paths.js'
import type { Item } from './types.js'
import type { Value } from './value.js'

/** One of `items`; `at`: where its path is written. */
export function readItem(value: Value): { item: Item; at: Value } | undefined {
  const fields = value.mapping(['key', 'path', 'mode'])
  const keyValue = fields?.required('key', 'tls.crt')
  const key = keyValue && readKey(keyValue)
  const at = fields?.required('path', key ?? 'tls.crt')
  const path = at && readInnerPath(at)
  const modeValue = fields?.field('mode')
  const mode = modeValue && readFileMode(modeValue)
  if (key === undefined || path === undefined || at === undefined) return undefined
  return { item: { key, path, mode }, at }
}
