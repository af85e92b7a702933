/** Pairs of Secrets that belong together, as a key and its trust do: written in one moment, they must be published together. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { LogLine } from './agent.js'
import type { Owner } from './guard.js'
import type { Namespace } from './namespace.js'
import type { Random } from '../random.js'

/** Milliseconds. */
const oneMoment = 50

/** The Secrets' versions in the API. */
export type Pair = readonly [first: string, second: string]

export class PairWriter {
  readonly #stalls: number[] = []

  constructor(
    t: Owner,
    private readonly namespace: Namespace,
    private readonly random: Random,
  ) {
    // A machine that keeps this process from its processor for as long keeps the server from sending, and the agent from reading.
    let last = performance.now()
    const watch = setInterval(() => {
      const now = performance.now()
      if (now - last > oneMoment) this.#stalls.push(now - last)
      last = now
    }, 5)
    t.teardown(() => clearInterval(watch))
  }

  /** Puts both Secrets and waits until they are published; answers undefined where the machine could not do it in one moment. */
  async write(
    [first, second]: Pair,
    content: Record<string, string>,
    published: () => Promise<unknown>,
  ): Promise<Pair | undefined> {
    this.#stalls.length = 0
    const began = performance.now()
    const putFirst = this.namespace.putSecret(first, content)
    await sleep(this.random.next() * 20)
    const written = [await this.namespace.putSecret(second, content), await putFirst] as const
    // A server that takes longer has not written them in one moment.
    const inOneMoment = performance.now() - began <= oneMoment
    await published()
    if (!inOneMoment || this.#stalls.length > 0) return undefined
    return [written[1].metadata.resourceVersion, written[0].metadata.resourceVersion]
  }
}

/** Whether a line of the log that reports a publication has one half of this pair. */
export function isMixed({ objects }: LogLine, pair: Pair): boolean {
  const published = (objects as { resourceVersion: string }[]).map(({ resourceVersion }) => resourceVersion)
  return pair.filter((version) => published.includes(version)).length === 1
}
