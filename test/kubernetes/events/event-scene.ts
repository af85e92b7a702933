/** A recorder of events on a clock that the test moves, and a server that answers as the test says. */
import { setImmediate as turn } from 'node:timers/promises'
import type { Log } from '../../../src/log.js'
import { ConnectionError, type ApiClient, type ApiResponse } from '../../../src/kubernetes/connection/client.js'
import { type EventDraft } from '../../../src/kubernetes/events/event-body.js'
import { EventRecorder, type EventClock } from '../../../src/kubernetes/events/event-recorder.js'

export const minute = 60_000

export class Clock implements EventClock {
  #at = 0
  readonly #sleepers = new Set<{ readonly until: number; wake(): void }>()

  now() {
    return { monotonic: this.#at, wall: new Date(Date.UTC(2026, 0, 1) + this.#at) }
  }

  sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const sleeper = { until: this.#at + milliseconds, wake: resolve }
      this.#sleepers.add(sleeper)
      signal.addEventListener('abort', () => resolve())
      if (signal.aborted) resolve()
    })
  }

  get sleeping(): boolean {
    return this.#sleepers.size > 0
  }

  async advance(milliseconds: number): Promise<void> {
    this.#at += milliseconds
    for (const sleeper of [...this.#sleepers]) {
      if (sleeper.until > this.#at) continue
      this.#sleepers.delete(sleeper)
      sleeper.wake()
    }
    await settled()
  }
}

/** Nothing here waits for anything but promises: a few turns of the loop, and all that can happen has happened. */
export async function settled(): Promise<void> {
  for (let turns = 0; turns < 5; turns++) await turn()
}

export interface Sent {
  readonly method: string
  readonly path: string
  readonly body: Record<string, unknown> & { readonly series?: { readonly count: number } }
}

export type Answer = number | Error | Promise<never>

/** An API server that answers as the test says. */
export class Scene {
  readonly clock = new Clock()
  readonly sent: Sent[] = []
  readonly lines: { readonly level: string; readonly fields: object; readonly message: string }[] = []
  answer: (sent: Sent) => Answer = ({ method }) => (method === 'POST' ? 201 : 200)
  readonly recorder: EventRecorder
  /** Requests carry no credential. */
  anonymous = false

  constructor() {
    const send: ApiClient['send'] = async (method, path, body, { signal }): Promise<ApiResponse> => {
      const sent = { method, path, body } as Sent
      this.sent.push(sent)
      const answer = this.answer(sent)
      if (answer instanceof Error) throw answer
      if (answer instanceof Promise) {
        return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(new Error('cut'))))
      }
      const { anonymous } = this
      return { status: answer, retryAfter: undefined, body: { message: 'as the test says' }, anonymous }
    }
    const at = (level: string) => (fields: object, message: string) => {
      this.lines.push({ level, fields, message })
    }
    const log: Log = { debug() {}, info: at('info'), warn: at('warn'), error: at('error') }
    this.recorder = new EventRecorder({ send }, { log, instance: 'n1', clock: this.clock, random: () => 0.5 })
  }

  async record(...drafts: EventDraft[]): Promise<void> {
    for (const draft of drafts) this.recorder.record(draft)
    await settled()
  }

  get counts(): string[] {
    return this.sent.map(({ method, body }) => `${method} ${body.series?.count ?? 1}`)
  }
}

export const away = new ConnectionError('refused', 'connection')

export function draft(note = 'note', fields: Partial<EventDraft> = {}): EventDraft {
  const subject = { kind: 'Secret', namespace: 'ns', name: 'a', uid: 'u' } as const
  return { subject, type: 'Warning', reason: 'CertificateInvalid', action: 'Publish', note, ...fields }
}
