import { join } from 'node:path'
import { tmpdir } from 'node:os'
import { parseArgs } from 'node:util'
import type { FileSystem } from '../../disk/disk.js'
import type { Depth } from './recording.js'

export interface Options {
  readonly fileSystems: readonly FileSystem[]
  readonly depth: Depth
  readonly only: readonly string[]
  readonly seed: number
  readonly bail: boolean
  readonly keep: string
  readonly replay: string | undefined
}

export const usage = `usage: npm run test:power -- [--file-systems ext4,xfs,btrfs] [--only PART-OF-A-NAME,…] [--seed N]
         [--quick | --exhaustive] [--bail] [--keep DIR] | --replay DIR`

/** Throws an Error that names the mistake in the arguments. */
export function readOptions(args: readonly string[], environment: NodeJS.ProcessEnv): Options | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      'file-systems': { type: 'string' },
      only: { type: 'string' },
      seed: { type: 'string' },
      quick: { type: 'boolean', default: false },
      exhaustive: { type: 'boolean', default: environment['HOLDFAST_CRASH'] === 'long' },
      bail: { type: 'boolean', default: false },
      keep: { type: 'string' },
      replay: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return 'help'
  const { quick, exhaustive, seed } = values
  const drawn = Math.floor(Math.random() * 2 ** 32)
  return {
    fileSystems: (values['file-systems'] ?? 'ext4,xfs,btrfs').split(',').map(fileSystemNamed),
    depth: quick ? 'few' : exhaustive ? 'exhaustive' : 'default',
    only: values.only?.split(',') ?? [],
    seed: seed === undefined ? drawn : whole('--seed', seed),
    bail: values.bail || quick,
    keep: values.keep ?? join(tmpdir(), `holdfast-power-${process.pid}`),
    replay: values.replay,
  }
}

function whole(name: string, text: string): number {
  if (!/^\d{1,10}$/.test(text)) throw new Error(`${name} takes a whole number, not ${text}`)
  return Number(text)
}

function fileSystemNamed(name: string): FileSystem {
  if (name === 'ext4' || name === 'xfs' || name === 'btrfs') return name
  throw new Error(`--file-systems knows ext4, xfs and btrfs, not ${name}`)
}
