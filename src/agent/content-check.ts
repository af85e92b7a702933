import type { DirectoryConfiguration } from '../config/types.js'
import { checkContent } from '../directories/content-check.js'
import { HookError } from '../directories/hook-error.js'
import { DurableWriteError } from '../durable/errors.js'
import type { ContentCheck, StagedContent } from '../durable/types.js'
import type { Log } from '../log.js'
import type { Rejection } from './conditions.js'

interface ConfiguredCheckOptions {
  readonly log: Log
  readonly signal: AbortSignal
  /** The last rejection: it rejects the same content without another examination. */
  readonly rejection: Rejection | undefined
  /** Runs the examination of a directory's content: its time does not count as the disk's. */
  readonly examining?: Examining | undefined
}

export type Examining = (directory: string, work: () => Promise<void>) => Promise<void>

/** `beforePublish` of one directory, for one publication. */
export class ConfiguredCheck implements ContentCheck {
  /** Milliseconds that the commands have taken. */
  milliseconds = 0
  /** Of the content that was to be published; undefined: it was so already. */
  digest: string | undefined

  constructor(
    private readonly configuration: DirectoryConfiguration,
    private readonly options: ConfiguredCheckOptions,
  ) {}

  accepts(digest: string): void {
    const { rejection } = this.options
    this.digest = digest
    if (rejection?.digest === digest) throw rejection.error
  }

  examine(content: StagedContent): Promise<void> {
    const { examining } = this.options
    const work = () => this.#examine(content)
    return examining === undefined ? work() : examining(this.configuration.path, work)
  }

  async #examine(content: StagedContent): Promise<void> {
    const { beforePublish, path } = this.configuration
    const startedAt = performance.now()
    try {
      for (const hook of beforePublish) {
        await checkContent(hook, content, this.options).catch((error: unknown) => {
          throw error instanceof HookError ? rejected(path, hook.place, error) : error
        })
      }
    } finally {
      this.milliseconds = performance.now() - startedAt
    }
  }
}

function rejected(path: string, place: string, { message, inconclusive }: HookError): DurableWriteError {
  if (inconclusive) {
    return new DurableWriteError(`${path}: its new content could not be examined (${place}): ${message}`, {
      code: 'EAGAIN',
      syscall: 'none',
      path,
      reason: 'PublishFailed',
      state: 'what is published stays',
      advice: 'see that the command can run here: its program, the memory, the limit of processes',
    })
  }
  return new DurableWriteError(`${path}: its new content is rejected (${place}): ${message}`, {
    code: 'EINVAL',
    syscall: 'none',
    path,
    reason: 'ContentRejected',
    state: 'what is published stays',
    advice: 'run the command by hand on the new content, and correct the content at its source',
  })
}
