import { UsageError } from './exit-codes.js'

/** A target as the durable core takes it, absolute. Throws UsageError for what can be no target, before anything is read. */
export async function targetArgument(text: string): Promise<string> {
  const { checkTarget } = await import('../durable/index.js')
  try {
    return checkTarget(text)
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}
