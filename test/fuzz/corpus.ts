/** The kept inputs of each target: one a line, as a JSON text whose characters are bytes. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { project } from '../project.js'

function fileOf(target: string): string {
  return join(project, 'test/fuzz/corpus', `${target}.jsonl`)
}

export function readCorpus(target: string): Buffer[] {
  if (!existsSync(fileOf(target))) return []
  return readFileSync(fileOf(target), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map(decodeInput)
}

/** Adds inputs to the kept ones, shortest first. */
export function growCorpus(target: string, fresh: readonly Buffer[]): void {
  const lines = new Set([...readCorpus(target), ...fresh].map(encodeInput))
  const sorted = [...lines].sort((a, b) => a.length - b.length || (a < b ? -1 : 1))
  writeFileSync(fileOf(target), sorted.map((line) => `${line}\n`).join(''))
}

export function encodeInput(input: Buffer): string {
  // In ASCII: an editor, or git, must not take part of an input for something of its own.
  return JSON.stringify(input.toString('latin1')).replace(
    /[\x7f-\xff]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

export function decodeInput(line: string): Buffer {
  return Buffer.from(JSON.parse(line) as string, 'latin1')
}
