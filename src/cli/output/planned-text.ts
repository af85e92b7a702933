import type { DirectoryChange } from '../../durable/publish/index.js'
import { escaped } from '../../quote.js'

/* How a dry run says what would be done: in the words of the result, and as each command says it. */

/** The result's word; of a dry run, what would be. */
export function outcomeText(outcome: string, dryRun: boolean): string {
  return dryRun && ['created', 'replaced', 'removed'].includes(outcome) ? `would be ${outcome}` : outcome
}

/** A line for each path that changes, as below a line of table(). */
export function changesText(changes: readonly DirectoryChange[] = []): string {
  const signs = { add: '+', change: '~', remove: '-' }
  return changes.map(({ path, change }) => `  ${signs[change]} ${escaped(path)}\n`).join('')
}
