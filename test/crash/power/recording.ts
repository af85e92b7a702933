/**
 * A run on a logged disk: the logs, one after the other from an empty disk on, and the facts that rebuild every state that a power cut in
 * it could have left. Written beside a violation, so that it can be examined again.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { FileSystem } from '../../disk/disk.js'
import { readLog, type LogRecord } from '../../disk/write-log.js'

export interface Recording {
  readonly fileSystem: FileSystem
  readonly scenario: string
  /** Bytes of the disk. */
  readonly size: number
  /** The disk has all writes of the logs before the last one: its unmount was in good order. */
  readonly logs: readonly string[]
  /** Where power cuts come: before each flush and after each answer of the program, or only after those and at the end. */
  readonly cuts: 'flushes' | 'said'
  readonly seed: number
  /** How many states: see cuts.ts. */
  readonly depth: Depth
  /** No more states than these, drawn; absent: all. */
  readonly most?: number
  /** The fault of the program or the disk, for the reader of a violation. */
  readonly note?: string
}

export type Depth = 'few' | 'default' | 'exhaustive'

export interface Records {
  readonly records: LogRecord[]
  /** Index of the first record of the last log. */
  readonly last: number
}

export function readRecords({ logs }: Recording): Records {
  const records: LogRecord[] = []
  let last = 0
  for (const log of logs) {
    last = records.length
    for (const record of readLog(log)) records.push(record)
  }
  return { records, last }
}

/** Copies it to where it stays; the directory. */
export function keepRecording(recording: Recording, directory: string): string {
  mkdirSync(directory, { recursive: true })
  const logs = recording.logs.map((log, index) => {
    copyFileSync(log, join(directory, `${index}.log`))
    return `${index}.log`
  })
  writeFileSync(join(directory, 'recording.json'), JSON.stringify({ ...recording, logs }, undefined, 2))
  return directory
}

export function readRecording(directory: string): Recording {
  const recording = JSON.parse(readFileSync(join(directory, 'recording.json'), 'utf8')) as Recording
  return { ...recording, logs: recording.logs.map((log) => join(directory, basename(log))) }
}
