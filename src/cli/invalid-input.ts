import { UsageError } from './exit-codes.js'

/** What was given is wrong whatever the node is like: exit 2, as for a wrong flag. */
export async function asUsageError<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (error instanceof Error && error.name === 'InvalidInput') throw new UsageError(error.message)
    throw error
  }
}
