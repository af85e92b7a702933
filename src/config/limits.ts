/** Reads `limits`: how much the objects of one directory may make of it. */
import { mostMembers } from '../kubernetes-names.js'
import { mappingOf, type Fields, type ValueType } from './field.js'
import { quote } from '../quote.js'
import type { Limits } from './types.js'
import { integer } from './value-types.js'
import type { Value } from './value.js'

const units: Readonly<Record<string, number>> = { Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3 }
const grammar = /^([1-9][0-9]{0,6})(Ki|Mi|Gi)$/

const size: ValueType<number> = {
  read: readSize,
  schema: () => ({ type: 'string', pattern: grammar.source }),
}

const fields = {
  keys: {
    type: integer(1, mostMembers),
    description: 'keys of one object',
    default: 4_096,
  },
  files: {
    type: integer(1, 1_000_000),
    description: 'files of the directory',
    default: 16_384,
  },
  bytes: {
    type: size,
    description: 'of its objects together: names and values of their keys, and 256 bytes for each',
    default: '64Mi',
  },
} satisfies Fields<unknown>

export const limits: ValueType<Limits> = mappingOf({ fields }, ({ read }) => read)

/** Without the field. */
export const defaultLimits: Limits = { keys: 4_096, files: 16_384, bytes: 64 * 1024 ** 2 }

function readSize(value: Value): number | undefined {
  const { node } = value
  if (node.kind === 'scalar' && typeof node.value === 'number')
    return value.wrong(`${node.source} has no unit`, `write as in ${quote('64Mi')}`)
  const text = value.text('64Mi')
  if (text === undefined) return undefined
  const [, digits, unit = ''] = grammar.exec(text) ?? []
  if (digits === undefined) return value.wrong(`${quote(text)} is not a size`, 'write as in "64Mi", "512Ki", "1Gi"')
  return Number(digits) * (units[unit] ?? NaN)
}
