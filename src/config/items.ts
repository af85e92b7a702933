import { mappingOf, type Fields, type ValueType } from './field.js'
import { dataKey } from './object-names.js'
import { fileMode } from './ownership.js'
import type { Item } from './types.js'
import type { Value } from './value.js'

/** One of `items`; `at`: where its path is written. */
export interface ReadItem {
  readonly item: Item
  readonly at: Value
}

/** `path`: the type of its path. */
export function itemWith(path: ValueType<string>): ValueType<ReadItem> {
  const fields = {
    key: { type: dataKey, description: 'a key of the object', required: 'tls.crt' },
    path: {
      type: path,
      description: 'the file that the key becomes, below `into`',
      required: ({ key }) => (typeof key === 'string' ? key : 'tls.crt'),
    },
    mode: { type: fileMode, description: "of this file; default: the directory's `fileMode`" },
  } satisfies Fields<unknown>
  return mappingOf({ fields }, ({ read: { key, path, mode }, at: { path: at } }) =>
    key === undefined || path === undefined || at === undefined ? undefined : { item: { key, path, mode }, at },
  )
}
