/** The thread of one command of `beforePublish`. It ends with the command, and its mount namespace with it. */
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { showInPlace } from '../durable/index.js'
import type { Log } from '../log.js'
import type { ContentCheckJob, ContentCheckMessage } from './content-check.js'
import { HookError } from './hook-error.js'
import { runExec } from './hook-exec.js'

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

// No top-level await: a program that is one file has its threads as CommonJS. What is thrown ends the thread, and is its error.
async function check(): Promise<void> {
  try {
    await runExec({ ...hook, command, all: true }, abort.signal, log)
    say({ accepted: true })
  } catch (error) {
    if (!(error instanceof HookError)) throw error
    say({ rejected: error.detail, inconclusive: error.inconclusive })
  } finally {
    port.close()
  }
}

void check()
