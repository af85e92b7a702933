/** Runs the task for every item, `width` at a time; the first failure is thrown once all that started has ended. */
export async function inParallel<Item>(
  items: readonly Item[],
  width: number,
  task: (item: Item) => Promise<void>,
): Promise<void> {
  const queue = items.values()
  let failed = false
  const worker = async (): Promise<void> => {
    for (const item of queue) {
      if (failed) return
      try {
        await task(item)
      } catch (error) {
        failed = true
        throw error
      }
    }
  }
  const results = await Promise.allSettled(Array.from({ length: width }, worker))
  for (const result of results) if (result.status === 'rejected') throw result.reason
}

/**
 * The results of `start` for each item, in the order of the items, with up to `width` of them under way ahead of the consumer. A consumer
 * that stops early waits for those.
 */
export async function* inOrder<Item, Result>(
  items: AsyncIterable<Item>,
  width: number,
  start: (item: Item) => Promise<Result>,
): AsyncGenerator<Result> {
  const underWay: Promise<Result>[] = []
  try {
    for await (const item of items) {
      const starting = start(item)
      // It may fail before its turn has come.
      starting.catch(() => undefined)
      underWay.push(starting)
      const first = underWay.length < width ? undefined : underWay.shift()
      if (first !== undefined) yield await first
    }
    for (let next = underWay.shift(); next !== undefined; next = underWay.shift()) yield await next
  } finally {
    await Promise.allSettled(underWay)
  }
}
