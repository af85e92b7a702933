import type { Io } from '../output/io.js'
import { createLogger } from '../output/logger.js'
import { parseListen } from '../words/option-values.js'
import { print } from '../output/print.js'
import { interruptible } from '../signals.js'
import { pathArgument } from '../words/target.js'
import { command, flag } from '../words/command.js'
import type { FlagsOf } from '../words/types.js'
import { reportFlags, requireFlags } from '../words/options.js'

const flags = [
  flag('--listen <address:port>', 'where to listen', {
    parse: parseListen,
    fallback: parseListen(':10809'),
    shown: ':10809',
  }),
  flag('--key-file <file>', 'the key that both share; only its owner may read it', { env: 'HOLDFAST_KEY_FILE' }),
  flag('--state <file>', 'where to remember; a file for each disk'),
  ...reportFlags,
]

type WitnessFlags = FlagsOf<typeof flags>

/** `holdfast witness --state FILE` */
export const witnessCommand = command({
  name: 'witness',
  summary: 'remember what "holdfast torture" acknowledged on another machine',
  description: `Listens for one "holdfast torture" on a machine whose power will be cut, and remembers in FILE what that has announced and
acknowledged. Start it on a machine that keeps its power; started again with the same FILE, it goes on.

Both prove with a key that they are who they say. Without --key-file it makes one for this FILE, in FILE.key with mode 0600, and prints
that name: copy the file to the other machine by a way that you trust.`,
  flags,
  examples: `  holdfast witness --state disk-7.json
  holdfast witness --listen 192.0.2.7:10809 --state disk-7.json --key-file witness.key`,
  exitCodes: `0 ended by SIGTERM or SIGINT, 1 it cannot listen, or cannot write FILE, 2 wrong usage, 75 another witness has FILE.`,
  run: ({ io, options }) => run(io, options),
})

async function run(io: Io, options: WitnessFlags): Promise<void> {
  requireFlags({ '--state FILE': options.state })
  if (options.state === undefined) throw new Error('unreachable')
  const stateFile = pathArgument(options.state)
  const keyFile = options.keyFile ?? `${stateFile}.key`
  const { Witness, lockLedger, readLedger, readWitnessKey, readOrMakeKey } = await import('../../../torture/index.js')
  await interruptible(io, async (signal) => {
    // Takes the lock before it reads: another witness may still write the ledger.
    const held = await lockLedger(stateFile, signal)
    try {
      const state = await readLedger(stateFile)
      const key = await (options.keyFile === undefined ? readOrMakeKey : readWitnessKey)(keyFile)
      const witness = await Witness.start({ ...options, stateFile, state, key, log: createLogger(io, options) })
      try {
        const { host, port } = witness.address
        const document = { address: { host, port }, keyFile, stateFile }
        await print(
          io.stdout,
          options.output,
          document,
          () => `listening on ${host.includes(':') ? `[${host}]` : host}:${port}, key in ${keyFile}\n`,
        )
        await new Promise<void>((resolve) => {
          if (signal.aborted) resolve()
          else signal.addEventListener('abort', () => resolve(), { once: true })
        })
      } finally {
        await witness.close()
      }
    } finally {
      await held.release()
    }
  })
}
