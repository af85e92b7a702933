import { Exit, exitCodes } from '../words/exit-codes.js'
import type { Io } from '../output/io.js'
import { createLogger } from '../output/logger.js'
import { parseHostPort } from '../words/option-values.js'
import { print } from '../output/print.js'
import { interruptible } from '../signals.js'
import { pathArgument } from '../words/target.js'
import { version } from '../words/version.js'
import { command, flag } from '../words/command.js'
import type { FlagsOf } from '../words/types.js'
import { reportFlags, requireFlags } from '../words/options.js'

const flags = [
  flag('--witness <host:port>', 'where "holdfast witness" runs', { parse: parseHostPort, env: 'HOLDFAST_WITNESS' }),
  flag('--key-file <file>', 'the key that both share; only its owner may read it', { env: 'HOLDFAST_KEY_FILE' }),
  flag('--verify', 'examine what the outage has left, print the verdict, publish nothing'),
  flag('--reset', 'the last outage was a reset, and the disk kept its power: do not count it'),
  ...reportFlags,
]

type TortureFlags = FlagsOf<typeof flags>

/** `holdfast torture DIR --witness HOST:PORT` */
export const tortureCommand = command({
  name: 'torture',
  summary: 'does this disk keep what it acknowledged when its power goes?',
  description: `Publishes one generation of files after the other in a new directory in DIR, and tells a witness on another machine of each before
and after. Pull the plug; after the next start, run it with --verify: it compares the disk with what the witness heard, and prints a
verdict for whoever sold the disk. Without --verify it examines the disk in the same way, and goes on: a verdict gains by many cuts.

Only a power cut with a write in flight counts. holdfast cannot tell a reset, which leaves the disk its power, from a power cut: say
--reset then. It writes nowhere but in its own directory, and removes nothing.`,
  words: [['<dir>', 'a directory on the disk']],
  flags,
  examples: `  holdfast torture /mnt/disk --witness 192.0.2.7:10809 --key-file witness.key
  holdfast torture /mnt/disk --witness 192.0.2.7:10809 --key-file witness.key --verify`,
  exitCodes: `0 everything acknowledged was kept (with --verify: in at least one power cut; without: until a signal came),
1 no verdict (no power cut has been examined, no witness, another disk is mounted), 2 wrong usage, 4 the disk lost what it had
acknowledged.`,
  run: ({ io, options }, directory) => run(io, directory, options),
})

async function run(io: Io, directory: string, options: TortureFlags): Promise<void> {
  const { witness, keyFile } = options
  requireFlags(
    { '--witness HOST:PORT': witness, '--key-file FILE': keyFile },
    ': without a witness there is no verdict',
  )
  if (witness === undefined || keyFile === undefined) throw new Error('unreachable')
  const path = pathArgument(directory)
  const [{ torture, verifyDisk, readWitnessKey }, { system }] = await Promise.all([
    import('../../../torture/index.js'),
    import('../../durable/index.js'),
  ])
  const key = await readWitnessKey(keyFile)
  const boot = await system.bootId()
  const verdict = await interruptible(io, (signal) =>
    (options.verify ? verifyDisk : torture)({
      directory: path,
      witness,
      key,
      boot,
      signal,
      version: version(),
      outage: options.reset ? 'reset' : 'power',
      log: createLogger(io, options),
    }),
  )
  const { verdictText } = await import('../output/verdict-text.js')
  await print(io.stdout, options.output, verdict, () => verdictText(verdict))
  if (verdict.verdict === 'lost') throw new Exit(exitCodes.fault)
  if (verdict.verdict === 'none' && options.verify) throw new Exit(exitCodes.failed)
}
