// In the library, in the place of koffi and of native/load-koffi.ts: a call waits for koffi, and not the import, so that a program that embeds
// holdfast starts on a Mac, or where koffi has no binary. By a literal import(), which bundlers find, and require() of an ES module allows.

import { missingKoffi } from '../../native/missing-koffi.ts'

/** It begins at once: where no file can be opened for a moment, Node would take a later failure for one that lasts. */
const loading = process.platform === 'linux' ? import('koffi') : undefined
loading?.catch(() => {})

let koffi

export { koffi as default }

export async function loadKoffi() {
  try {
    koffi ??= (await loading).default
  } catch (error) {
    throw missingKoffi(error)
  }
}
