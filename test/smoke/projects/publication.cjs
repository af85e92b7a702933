/* The same from CommonJS: `node publication.cjs TARGET`. */
const { replaceDirectory } = require('holdfast')

replaceDirectory(process.argv[2], { files: { 'tls.crt': 'certificate', 'sub/tls.key': 'key' } }).then(({ outcome }) =>
  console.log(outcome),
)
