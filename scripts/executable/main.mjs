// The entry of the single executable (see bundle.mjs): what bin/holdfast.js is for the files of the package.
import '../../bin/prepare.js'
import { main } from '../../src/cli/main.ts'

void main(process.argv.slice(2)).then((code) => {
  process.exitCode = code
})
