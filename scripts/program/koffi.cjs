'use strict'
// In the bundled program, in the place of koffi's own loader, which looks for its binary among those of twenty platforms and reads Node's ELF
// header: a tenth of what `holdfast replace` takes to start. Whatever is not as expected is left to that loader.

/** koffi's binary for this platform, of the version that the program was made with; undefined where it is not beside koffi. */
function binary() {
  // glibc's and musl's: the dynamic loader takes one of them.
  for (const libc of ['linux', 'musl']) {
    try {
      const koffi = require(`@koromix/koffi-linux-${process.arch}/${libc}_${process.arch}/koffi.node`)
      if (koffi.version === koffiVersion) return koffi
    } catch {
      // The other one, or the loader.
    }
  }
  return undefined
}

function loader() {
  try {
    return require('koffi').default
  } catch (error) {
    throw require('../../native/missing-koffi.ts').missingKoffi(error)
  }
}

module.exports = binary() ?? loader()
