/** In what two outcomes of one case differ. */
import { parseManifest } from '../../src/static-pods/pod/manifest.js'
import { isSamePod } from '../../src/static-pods/pod/same-pod.js'
import type { CaseName } from './cases.js'
import type { Entry, Outcome } from './scene.js'

export interface Difference {
  readonly case: CaseName
  /** `form`: the same pod, written in another way. */
  readonly what: 'end' | 'events' | 'rollout' | 'only theirs' | 'only ours' | 'mode' | 'form' | 'content'
  /** Below the case's root; empty for a difference that is no file. */
  readonly path: string
  readonly theirs: unknown
  readonly ours: unknown
}

export async function compare(name: CaseName, theirs: Outcome, ours: Outcome): Promise<Difference[]> {
  const found: Difference[] = []
  for (const what of ['end', 'events', 'rollout'] as const) {
    if (JSON.stringify(theirs[what]) === JSON.stringify(ours[what])) continue
    found.push({ case: name, what, path: '', theirs: theirs[what], ours: ours[what] })
  }
  for (const path of [...new Set([...Object.keys(theirs.tree), ...Object.keys(ours.tree)])].sort()) {
    const [left, right] = [theirs.tree[path], ours.tree[path]]
    if (left?.mode !== undefined && right?.mode !== undefined && left.mode !== right.mode) {
      found.push({ case: name, what: 'mode', path, theirs: left.mode, ours: right.mode })
    }
    const what = await contentDiffers(left, right)
    if (what) found.push({ case: name, what, path, theirs: left, ours: right })
  }
  return found
}

async function contentDiffers(left?: Entry, right?: Entry): Promise<Difference['what'] | undefined> {
  if (!left) return 'only ours'
  if (!right) return 'only theirs'
  if (left.text === right.text && left.base64 === right.base64 && left.link === right.link) return undefined
  return (await samePod(left, right)) ? 'form' : 'content'
}

async function samePod(left: Entry, right: Entry): Promise<boolean> {
  try {
    const [a, b] = await Promise.all(
      [left, right].map(({ text }) => parseManifest(Buffer.from(text ?? ''), 'a manifest')),
    )
    return a !== undefined && b !== undefined && isSamePod(a, b)
  } catch {
    return false
  }
}
