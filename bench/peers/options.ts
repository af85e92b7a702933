import { parseArgs } from 'node:util'
import type { FileSystem } from '../../test/disk/disk.js'

export const usage =
  'usage: npm run bench:peers -- [--only NAME,NAME…] [--quick] [--rounds N] [--seed N] [--json FILE] [--svg FILE] [--check]\n' +
  '       npm run bench:peers -- --tables FILE,FILE… [--svg FILE]'

const parts = ['cost', 'power', 'watch', 'kubelet'] as const
type Part = (typeof parts)[number]
const fileSystems = ['ext4', 'xfs', 'btrfs'] as const satisfies readonly FileSystem[]

export interface Options {
  readonly parts: readonly Part[]
  readonly fileSystems: readonly FileSystem[]
  /** Names of peers; holdfast is always among them. */
  readonly peers: readonly string[]
  readonly quick: boolean
  readonly rounds: number
  readonly seed: number
  readonly json: string | undefined
  readonly svg: string | undefined
  readonly check: boolean
  /** Measure nothing, and print what these files of `json` have; empty: measure. */
  readonly tables: readonly string[]
}

/** @throws Error that names the mistake in the arguments */
export function readOptions(args: readonly string[], known: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string', default: '' },
      quick: { type: 'boolean', default: false },
      rounds: { type: 'string', default: '5' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
      json: { type: 'string' },
      svg: { type: 'string' },
      check: { type: 'boolean', default: false },
      tables: { type: 'string', default: '' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return 'help'
  const only = listed(values.only)
  for (const name of only) {
    if (![...parts, ...fileSystems, ...known].includes(name)) {
      throw new Error(`--only knows ${[...parts, ...fileSystems, ...known].join(', ')}; not ${name}`)
    }
  }
  // What none of the names is of is not narrowed.
  const narrowed = <T extends string>(all: readonly T[], otherwise = all): readonly T[] => {
    const named = all.filter((name) => only.includes(name))
    return named.length > 0 ? named : otherwise
  }
  const { quick } = values
  const wanted = narrowed(parts)
  if (values.check && !(wanted.includes('power') && wanted.includes('cost'))) {
    throw new Error('--check judges power cuts and costs together: --only must leave both')
  }
  return {
    parts: wanted,
    fileSystems: narrowed(fileSystems, quick ? ['ext4'] : fileSystems),
    peers: narrowed(known),
    quick,
    rounds: quick ? 1 : whole('--rounds', values.rounds),
    seed: whole('--seed', values.seed),
    json: values.json,
    svg: values.svg,
    check: values.check,
    tables: listed(values.tables),
  }
}

const listed = (text: string): string[] => text.split(',').filter((name) => name !== '')

function whole(name: string, text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new Error(`${name} takes a whole number from 1, not ${text}`)
  return value
}
