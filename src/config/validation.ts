import { mappingOf, type ValueType } from './field.js'
import { dataKey } from './object-names.js'
import { oneOf } from './value-types.js'

/** The words that `validate` may list. A new one starts here: the compiler then names each place that lacks it. */
const validations = ['certificates'] as const

/** A word, or what a key must hold. */
export type Validation = (typeof validations)[number] | { readonly bundle: string }

const words: ValueType<Validation> = oneOf(validations)
const bundle: ValueType<Validation> = mappingOf(
  {
    fields: {
      bundle: { type: dataKey, description: 'a key that must hold at least one certificate', required: 'ca.crt' },
    },
  },
  ({ read }) => (read.bundle === undefined ? undefined : { bundle: read.bundle }),
)

/** One of `validate`. */
export const validation: ValueType<Validation> = {
  read: (value, context) => {
    const { node } = value
    if (node.kind === 'scalar' && node.value === 'bundle')
      return value.wrong('bundle needs a key', 'write bundle: ca.crt')
    return (node.kind === 'mapping' ? bundle : words).read(value, context)
  },
  schema: () => ({ anyOf: [words.schema(), bundle.schema()] }),
}
