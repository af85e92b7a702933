/** Go, which makes what these tests run. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** @throws Error where there is none */
export async function findGo(): Promise<string> {
  for (const program of ['go', '/usr/local/go/bin/go']) {
    try {
      await promisify(execFile)(program, ['version'])
      return program
    } catch {
      continue
    }
  }
  throw new Error('the node tests need Go (https://go.dev/dl) to build what runs in their pods')
}
