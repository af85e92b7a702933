/**
 * What the compiled tests import as tap: its bundle, compiled by V8 once and kept beside it, for each process of tests would take
 * 0.035 s of CPU to compile it again. A copy that another version or other flags of V8 have made has another name.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cachedDataVersionTag } from 'node:v8'
import { constants, Script } from 'node:vm'

const filename = fileURLToPath(new URL('tap.cjs', import.meta.url))
const compiled = `${filename}.${cachedDataVersionTag()}`

function kept() {
  try {
    return readFileSync(compiled)
  } catch {
    return undefined
  }
}

const cachedData = kept()
const script = new Script(
  `(function (exports, require, module, __filename, __dirname) { ${readFileSync(filename, 'utf8')}\n})`,
  {
    filename,
    cachedData,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  },
)
const module = { exports: {} }
script.runInThisContext()(module.exports, createRequire(filename), module, filename, dirname(filename))

if (cachedData === undefined || script.cachedDataRejected) {
  // At the end: with the functions that a run of tests has called.
  process.once('exit', () => {
    try {
      const fresh = `${compiled}.${process.pid}`
      writeFileSync(fresh, script.createCachedData())
      renameSync(fresh, compiled)
    } catch {
      // The next process compiles it again.
    }
  })
}

export default module.exports.default
export const { t } = module.exports
