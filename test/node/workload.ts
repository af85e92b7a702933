/** The program of the test pods (workload/), built with Go, and its report. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { workingDirectory } from '../e2e/guard.js'
import { project } from '../project.js'

/** The image's name in containerd. */
export const workloadImage = 'holdfast.test/workload:1'

interface Findings {
  /** Serial number of the newest certificate read; 0 before the first. */
  readonly newest: number
  /** How many certificates were read whole, each counted once. */
  readonly distinct: number
  readonly reads: number
  /** Reads that met the end of the directory they had open. */
  readonly stale: number
  readonly faults: readonly string[]
}

export interface Report {
  /** Another one for each start of the program. */
  readonly instance: string
  readonly revision: string
  readonly findings?: Findings
}

/** @throws Error where there is none */
async function findGo(): Promise<string> {
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

/** Builds it; returns its path. Go caches compiled packages, so only the first build of all takes seconds. */
export async function buildWorkload(): Promise<string> {
  const program = join(mkdtempSync(join(workingDirectory, 'workload-')), 'workload')
  const flags = ['build', '-trimpath', '-ldflags', '-s -w', '-o', program, '.']
  await promisify(execFile)(await findGo(), flags, {
    cwd: join(project, 'test/node/workload'),
    env: { ...process.env, CGO_ENABLED: '0' },
  })
  return program
}

/** @throws Error while no server listens on this port */
export async function askWorkload(port: number): Promise<Report> {
  const response = await fetch(`http://127.0.0.1:${port}/report`, { headers: { connection: 'close' } })
  return (await response.json()) as Report
}

export interface Pair {
  readonly certificate: string
  readonly key: string
}

/** Pairs of certificate and key, with the serial numbers 1 to `count`. */
export async function makePairs(program: string, count: number): Promise<Pair[]> {
  const directory = mkdtempSync(join(workingDirectory, 'pairs-'))
  await promisify(execFile)(program, ['pairs', String(count), directory])
  return Array.from({ length: count }, (_, index) => ({
    certificate: readFileSync(join(directory, `${index + 1}.crt`), 'utf8'),
    key: readFileSync(join(directory, `${index + 1}.key`), 'utf8'),
  }))
}
