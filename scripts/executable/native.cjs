'use strict'
// In the executable, in the place of koffi's own loader: koffi's binary is an asset, and the dynamic loader takes nothing but a file.
const {
  chmodSync,
  lstatSync,
  mkdtempSync,
  realpathSync,
  rmdirSync,
  statfsSync,
  unlinkSync,
  writeFileSync,
} = require('node:fs')
const { tmpdir } = require('node:os')
const { dirname, join } = require('node:path')
const { getAsset } = require('node:sea')
const { othersWrite } = require('../../src/writers.ts')

/** Any of them may be read-only, full, or mounted with noexec. */
const places = () =>
  new Set([tmpdir(), '/tmp', '/var/tmp', '/dev/shm', '/run', '/var/lib/holdfast', dirname(process.execPath)])

/** Source: Linux, include/uapi/linux/magic.h, FUSE_SUPER_MAGIC. */
const fuse = 0x65735546

/**
 * Why another user could put something else in the place of what is made below this directory, between its making and its load; undefined:
 * none could. Takes a path without links.
 */
function doubtOf(path) {
  if (statfsSync(path).type === fuse) return 'its FUSE server decides what its files hold'
  for (let at = path; ; at = dirname(at)) {
    const { uid, gid, mode } = lstatSync(at)
    const doubt = othersWrite({ path: at, kind: 'directory', uid, gid, mode: mode & 0o7777 }, process.geteuid())
    if (doubt !== undefined || at === '/') return doubt
  }
}

/** The binary, loaded from a file that nobody else can reach and that is gone afterwards. Throws an Error that names each place. */
exports.loadStatic = function loadStatic() {
  const binary = new Uint8Array(getAsset('koffi.node'))
  const problems = []
  for (const place of places()) {
    let directory
    try {
      const real = realpathSync(place)
      const doubt = doubtOf(real)
      if (doubt !== undefined) {
        problems.push(`${place}: ${doubt}`)
        continue
      }
      // Mode 0700, and a name that did not exist.
      directory = mkdtempSync(join(real, 'holdfast-'))
    } catch (error) {
      problems.push(`${place}: ${error.code}`)
      continue
    }
    const file = join(directory, 'koffi.node')
    try {
      writeFileSync(file, binary, { flag: 'wx', mode: 0o500 })
      // Whatever the umask is.
      chmodSync(file, 0o500)
      const loaded = { exports: {} }
      process.dlopen(loaded, file)
      return loaded.exports
    } catch (error) {
      problems.push(`${place}: ${error.message}`)
    } finally {
      remove(() => unlinkSync(file))
      remove(() => rmdirSync(directory))
    }
  }
  throw new Error(
    `no directory takes the native part of holdfast; set TMPDIR to one of root's or yours, on a file system that may execute (${problems.join('; ')})`,
  )
}

function remove(call) {
  try {
    call()
  } catch {
    // It was not made.
  }
}
