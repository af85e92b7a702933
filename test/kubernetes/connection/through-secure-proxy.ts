import { Credentials } from '../../../src/kubernetes/credentials/credentials.js'
import { connect } from '../../../src/kubernetes/connection/connection.js'

/**
 * Run by proxy.test.ts as a separate process: Node reads the authorities that judge a proxy's certificate
 * (NODE_EXTRA_CA_CERTS) when it starts. Prints the status of one GET, or why there is none.
 */
const kubeconfig = process.argv[2] ?? ''
const api = connect(await new Credentials({ kubeconfig, environment: process.env }).load(), { version: '1' })
try {
  console.log((await api.get('/path', {}, { timeout: 10_000 })).status)
} catch (error) {
  console.log((error as Error).message)
}
await api.close()
