/** kubelet's own source of static pods, which says what kubelet makes of manifests (control-plane/kubelet-decode), of two versions. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { isDeepStrictEqual } from 'node:util'
import type { Test } from 'tap'
import { encodeManifest, parseManifest } from '../../src/static-pods/pod/manifest.js'
import { readManifestText } from '../../src/yaml/manifest-text.js'
import { asList, asMap, asText, type JsonMap } from '../../src/static-pods/json.js'
import { findProgram, type Program } from './assets.js'
import { endProcess, startProcess, workingDirectory, type Owner } from './guard.js'

/** kubelet's words after it has read its directory once: why it refuses files, and the pods that it would run. */
export interface Reading {
  /** By the file's name. */
  readonly refused: ReadonlyMap<string, string>
  readonly pods: readonly JsonMap[]
}

/** By the minor version. The last is the newest, that of the control plane. */
export const kubelets = new Map<number, Program>([
  [35, 'kubelet-decode-1.35'],
  [37, 'kubelet-decode'],
])

/** Starts kubelet's file source; each call of the answer waits for it to read the directory, which it does at each interval. */
export async function watchManifests(
  owner: Owner,
  directory: string,
  interval: string,
  kubelet: Program = 'kubelet-decode',
): Promise<() => Promise<Reading>> {
  const child = startProcess(await findProgram(kubelet), [directory, interval], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  owner.teardown(() => endProcess(child, 'SIGKILL'))
  if (!child.stdout) throw new Error('unreachable')
  const lines: AsyncIterator<string, unknown> = createInterface(child.stdout)[Symbol.asyncIterator]()
  return async () => {
    const refused = new Map<string, string>()
    for (;;) {
      const line = await lines.next()
      if (line.done === true) throw new Error('kubelet-decode has ended')
      // A number keeps all of its digits.
      const told = asMap((await readManifestText(line.value)).value) ?? {}
      if ('pods' in told) return { refused, pods: asList(told.pods).map((pod) => asMap(pod) ?? {}) }
      refused.set(basename(asText(told.path) ?? ''), asText(told.error) ?? '')
    }
  }
}

/** kubelet's reading of each text, by its index. */
export async function judge(
  owner: Owner,
  texts: readonly (string | Uint8Array)[],
  kubelet?: Program,
): Promise<{ readonly refusals: readonly (string | undefined)[]; readonly pods: readonly JsonMap[] }> {
  const directory = mkdtempSync(join(workingDirectory, 'manifests-'))
  mkdirSync(directory, { recursive: true })
  for (const [index, text] of texts.entries()) writeFileSync(join(directory, `${index}.yaml`), text)
  const { refused, pods } = await (await watchManifests(owner, directory, '1h', kubelet))()
  return { refusals: texts.map((_, index) => refused.get(`${index}.yaml`)), pods }
}

/** The same of every kubelet: their refusals of each text, and the pods of the newest. */
export async function judgeByAll(
  owner: Owner,
  texts: readonly (string | Uint8Array)[],
): Promise<{ readonly refusals: readonly (string | undefined)[]; readonly pods: readonly JsonMap[] }> {
  const refusals: (string | undefined)[] = texts.map(() => undefined)
  let newest: readonly JsonMap[] = []
  for (const program of kubelets.values()) {
    const read = await judge(owner, texts, program)
    for (const [index, refusal] of read.refusals.entries())
      refusals[index] = refusals[index] ? `${refusals[index]}\n${refusal ?? ''}` : refusal
    newest = read.pods
  }
  return { refusals, pods: newest }
}

/**
 * Has holdfast write the manifests that it and kubelet take, and kubelet read these: it takes each, and makes the same pod of it. Answers how
 * many pods were compared. `pods`: of the manifests as they were.
 */
export async function compareWritten(
  t: Test,
  taken: readonly { readonly text: string; readonly uid: string }[],
  pods: readonly JsonMap[],
  kubelet?: Program,
): Promise<number> {
  const written = await Promise.all(
    taken.map(async ({ text }) => {
      const manifest = await parseManifest(Buffer.from(text), 'web.yaml')
      return encodeManifest(manifest, manifest.uid)
    }),
  )
  const again = await judge(t, written, kubelet)
  t.strictSame(
    again.refusals.filter((refusal) => refusal !== undefined),
    [],
    'kubelet takes what holdfast writes',
  )
  const [before, after] = [byUid(pods), byUid(again.pods)]
  const compared = taken.filter(({ uid }) => before.has(uid))
  const changed = compared.filter(({ uid }) => !isDeepStrictEqual(after.get(uid), before.get(uid)))
  t.strictSame(
    changed.slice(0, 3),
    [],
    `and makes the same pod of it: ${changed.length} of ${compared.length} are another`,
  )
  return compared.length
}

function byUid(pods: readonly JsonMap[]): Map<string, JsonMap> {
  return new Map(pods.map((pod) => [asText(asMap(pod.metadata)?.uid) ?? '', pod]))
}

/** How often each occurs, the most frequent first. */
export function counted(words: readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a).map(([word, times]) => `${times} × ${word}`)
}

/** kubelet's words without the names and values in them. */
export function ruleOf(refusal: string): string {
  const [, list = refusal] = /invalid pod: \[?(.*)/s.exec(refusal) ?? []
  return list
    .replaceAll(/\[\d+\]/g, '[]')
    .replace(/(Invalid|Unsupported) value: (?:"[^"]*"|[^:]*)/, '$1 value')
    .slice(0, 110)
}
