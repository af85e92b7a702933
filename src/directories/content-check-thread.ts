/** The thread of one command of `beforePublish`. It ends with the command, and so do its namespaces and all that runs in them. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { endTogether, showInPlace } from '../durable/index.js'
import type { Log } from '../log.js'
import type { ContentCheckJob, ContentCheckMessage } from './content-check.js'
import { HookError } from './hook-error.js'
import { environment, runExec } from './hook-exec.js'

/** Stands in an argument for the directory that is checked. */
const placeholder = '{dir}'

// The main thread, and all that is published, must never leave the namespace of the process.
if (isMainThread || parentPort === null) throw new Error('only for a thread of its own')
const port = parentPort

function say(message: ContentCheckMessage): void {
  port.postMessage(message)
}

const debug = (fields: object, line: string): void => say({ fields, line })
const log: Log = { debug, info: debug, warn: debug, error: debug }

const { hook, content } = workerData as ContentCheckJob
const abort = new AbortController()
port.once('message', () => abort.abort())
const inPlace = showInPlace(content)
const directory = inPlace ? content.target : content.directory
debug({ hook: hook.name, inPlace }, 'content check starts')
const command = hook.command.map((word) => word.replaceAll(placeholder, directory))

const shell = '/bin/sh'

/**
 * Process 1 of a PID namespace for the command: the kernel ends all others with it, sessions of their own or not. It is not the command
 * itself, since that number changes what signals do. It reads a pipe that ends with this thread, and so with an agent that is killed.
 */
async function startFirst(): Promise<{ end(): Promise<unknown> } | undefined> {
  if (!existsSync(shell) || !endTogether()) return undefined
  const options = { env: environment, cwd: '/', detached: true } as const
  const first = spawn(shell, ['-c', 'read nothing'], { ...options, stdio: ['pipe', 'ignore', 'ignore'] })
  const ended = once(first, 'exit')
  await once(first, 'spawn')
  return {
    /** The kernel tells of its end only once all others have ended. */
    end() {
      first.kill('SIGKILL')
      return ended
    },
  }
}

// No top-level await: a program that is one file has its threads as CommonJS. A throw ends the thread, and is its error.
async function check(): Promise<void> {
  const first = await startFirst()
  try {
    await runExec({ ...hook, command, all: true }, abort.signal, log)
    say({ accepted: true })
  } catch (error) {
    if (!(error instanceof HookError)) throw error
    say({ rejected: error.detail, inconclusive: error.inconclusive })
  } finally {
    await first?.end()
    port.close()
  }
}

void check()
