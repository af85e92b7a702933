/** Each mistake that a configuration can hold, and its message. */
import type { BrokenConfiguration } from './broken-configuration.js'
import { brokenContents } from './broken/contents.js'
import { brokenDocuments } from './broken/document.js'
import { brokenHooks } from './broken/hooks.js'
import { brokenSelectors } from './broken/selectors.js'
import { brokenMoves } from './broken/moves.js'
import { brokenTargets } from './broken/targets.js'

export const brokenConfigurations: readonly BrokenConfiguration[] = [
  ...brokenDocuments,
  ...brokenTargets,
  ...brokenMoves,
  ...brokenContents,
  ...brokenSelectors,
  ...brokenHooks,
]
