import { closeSync, constants, openSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Daemon } from '../../agent/daemon.js'
import { openSource } from '../../agent/open-source.js'
import { loadConfiguration } from '../../config/load.js'
import { readPublication, replaceFile } from '../../durable/index.js'
import { painter, wantsColour, type Paint } from '../output/colour.js'
import type { Io } from '../output/io.js'
import { createLogger, type LogOptions } from '../output/logger.js'
import { Ending } from '../signals.js'
import { Exit, exitCodeAfter } from '../words/exit-codes.js'
import { version } from '../words/version.js'
import { selfSigned, type KeyPair } from './certificate.js'
import { listing } from './listing.js'
import { configMapYaml, configurationYaml, secretYaml } from './objects.js'
import { Reader } from './reader.js'

const hostName = 'web.demo.example'
const notProven = ' Durability is not proven here (proven: ext4 with its journal, xfs, btrfs).'
/** Milliseconds between the first publication and the update: time to look at the first. */
const interlude = 2000

/** Runs the tour until a signal ends it. */
export async function runDemo(io: Io, chosen: string | undefined, options: LogOptions): Promise<void> {
  const log = createLogger(io, options)
  const ending = new Ending(io, log)
  const ended = new AbortController()
  void ending.signal.then(() => ended.abort())
  const root = chosen === undefined ? await mkdtemp(join(tmpdir(), 'holdfast-demo-')) : resolve(chosen)
  const paths = pathsIn(root)
  try {
    const before = selfSigned(hostName, 90)
    await layOut(paths, before)
    const load = () => loadConfiguration(paths.configuration)
    const daemon = await Daemon.start({
      configuration: await load(),
      load,
      openSource: (source, listener) => openSource(source, listener, { log, version: version() }),
      log,
      version: version(),
      node: '',
    })
    const hadTerminal = hasTerminal()
    const onHangup = () => {
      if (hadTerminal && !hasTerminal()) ending.end('SIGHUP')
      else void daemon.reload()
    }
    io.events.on('SIGHUP', onHangup)
    try {
      await tour(io, daemon, paths, before, ended.signal)
      await ending.signal
    } catch (error) {
      if (!ended.signal.aborted) throw error
    } finally {
      await daemon.stop()
      io.events.removeListener('SIGHUP', onHangup)
    }
  } finally {
    if (chosen === undefined) await rm(root, { recursive: true, force: true })
    ending.release()
  }
  // Its output would have no reader.
  const signal = await ending.signal
  if (signal === 'SIGHUP') throw new Exit(exitCodeAfter(signal))
  io.stdout.write(`\nThe demo has ended; ${chosen === undefined ? `it removed ${root}` : `it left ${root}`}\n`)
}

/** The kernel sends SIGHUP when a terminal is closed, which is then no process's any more; a user's kill(1) leaves it. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', constants.O_RDONLY | constants.O_NOCTTY))
    return true
  } catch {
    return false
  }
}

interface Paths {
  readonly root: string
  readonly objects: string
  readonly secret: string
  readonly configuration: string
  readonly target: string
}

function pathsIn(root: string): Paths {
  const objects = join(root, 'objects')
  return {
    root,
    objects,
    secret: join(objects, 'serving-cert.yaml'),
    configuration: join(root, 'holdfast.yaml'),
    target: join(root, 'node', 'web'),
  }
}

async function layOut(paths: Paths, pair: KeyPair): Promise<void> {
  await mkdir(paths.objects, { recursive: true })
  await replaceFile(paths.secret, secretYaml(pair, 1))
  await replaceFile(join(paths.objects, 'web.yaml'), configMapYaml())
  await replaceFile(paths.configuration, configurationYaml(), { mode: 0o644 })
}

async function tour(io: Io, daemon: Daemon, paths: Paths, before: KeyPair, signal: AbortSignal): Promise<void> {
  const paint = painter(wantsColour(io.stdout, io.env))
  const print = (text: string) => io.stdout.write(text)
  const heading = (text: string) => print(`\n${paint('bold', text)}\n\n`)
  heading('1. A Secret and a ConfigMap, as files, become one directory')
  const first = await published(paths.target, undefined, signal)
  print(await listing(paths.target))
  print(`\n${first}\n`)

  heading('2. The certificate is renewed, while a program keeps reading it')
  const after = selfSigned(hostName, 90)
  const pairs = new Set([before, after].map(({ certificate, key }) => certificate + key))
  const reader = new Reader(join(paths.target, 'tls'), (certificate, key) => pairs.has(certificate + key))
  try {
    await pause(interlude, undefined, { signal })
    const { unproven } = await replaceFile(paths.secret, secretYaml(after, 2))
    const renewed = performance.now()
    const second = await published(paths.target, first, signal)
    const milliseconds = Math.round(performance.now() - renewed)
    await pause(200, undefined, { signal })
    print(await listing(paths.target))
    print(`\n${second}\n`)
    print(
      '\nAll inodes are new, and the old ones are gone: holdfast never writes into a file that a program may be reading.\n',
    )
    // The target is on the file system of the Secret.
    const place = unproven ? 'On the disk' : 'On the disk and durable'
    print(`${place}, ${milliseconds} ms after the Secret was written.${unproven ? notProven : ''}\n`)
  } finally {
    const { reads, mixed } = await reader.stop()
    print(`The program read ${reads} pairs of certificate and key meanwhile; ${mixed} of them did not match\n`)
  }

  heading('3. Look at it')
  print(commands(paths, daemon, paint))
  print('\nCtrl-C ends the demo.\n')
}

/** Waits until something else than `known` is published, and answers its digest. */
async function published(target: string, known: string | undefined, signal: AbortSignal): Promise<string> {
  for (;;) {
    const publication = await readPublication(target)
    if (publication?.settled && publication.digest !== known) return publication.digest
    await pause(10, undefined, { signal })
  }
}

/** How a user of this demo starts holdfast, by the path of the running program. @internal */
export function asTyped(program = ''): string {
  if (program.endsWith('holdfast.js')) return 'node bin/holdfast.js'
  return program.includes('/node_modules/.bin/') ? 'npx holdfast' : 'holdfast'
}

function commands({ target, secret, configuration }: Paths, { address }: Daemon, paint: Paint): string {
  const holdfast = asTyped(process.argv[1])
  const lines = [
    ['the new content', `cat ${target}/tls/rotation`],
    ['its state', `${holdfast} status --config ${configuration}`],
    ['compared with its record', `${holdfast} verify --config ${configuration}`],
    ['damage it; SIGHUP repairs', `rm ${target}/web.conf; kill -HUP ${process.pid}`],
    ['change an object', `sed -i 's/rotation: .*/rotation: "3"/' ${secret}`],
    ...(address ? [['metrics', `curl http://${address.host}:${address.port}/metrics`]] : []),
  ]
  return lines.map(([what = '', command = '']) => `  ${paint('grey', what.padEnd(26))} ${command}\n`).join('')
}
