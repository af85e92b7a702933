/**
 * Loads koffi. The modules that call it have loaded it with themselves; but in the library, scripts/program/late-koffi.mjs takes the place of
 * this module, and of koffi.
 */
export async function loadKoffi(): Promise<void> {
  return Promise.resolve()
}
