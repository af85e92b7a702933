/** kubelet's own validation, of the oldest and of the newest kubelet, judges pods with one mistake each; holdfast publishes none that it refuses. */
import t, { type Test } from 'tap'
import { replaying, seed } from '../seed.js'
import { errorOf, saidOf } from '../static-pods/pod/error-of.js'
import { drawMistakes, mistakes, type Mistake } from '../static-pods/pod/mistakes.js'
import { sound } from '../static-pods/pod/sound-parts.js'
import type { Program } from './assets.js'
import { judge, kubelets, ruleOf } from './kubelet-judge.js'

/** `npm run proof` takes all: ten minutes for each kubelet. */
const all = process.env.HOLDFAST_FIELDS === 'all'

/** Of each seed. */
const count = all ? mistakes : Number(process.env.HOLDFAST_MISTAKES ?? '2500')

await t.test('each kubelet, and holdfast, takes the sound pods, which are to be broken', async (t) => {
  const texts = sound.map(({ pod }) => JSON.stringify(pod))
  for (const [minor, program] of kubelets) {
    const { refusals } = await judge(t, texts, program)
    for (const [index, { what }] of sound.entries()) t.equal(refusals[index], undefined, `1.${minor}: ${what}`)
  }
  for (const [index, { what }] of sound.entries())
    t.equal(await errorOf(texts[index] ?? ''), undefined, `holdfast: ${what}`)
})

/** By the rule: how often kubelet refuses, and how often holdfast refuses, warns, and does neither, of a node of which it knows nothing. */
class Table {
  readonly #rows = new Map<string, Record<'kubelet' | 'refused' | 'warned' | 'published', number>>()

  add(refusal: string, said: 'refused' | 'warned' | 'published'): void {
    const rule = ruleOf(refusal).replace(/: .*/, '')
    const row = this.#rows.get(rule) ?? { kubelet: 0, refused: 0, warned: 0, published: 0 }
    row.kubelet++
    row[said]++
    this.#rows.set(rule, row)
  }

  *lines(): Generator<string> {
    const rows = [...this.#rows].sort(([, a], [, b]) => b.published - a.published || b.kubelet - a.kubelet)
    const all = (['kubelet', 'refused', 'warned', 'published'] as const).map((of) =>
      rows.reduce((sum, [, row]) => sum + row[of], 0),
    )
    yield `kubelet refuses / holdfast refuses / warns / publishes: ${all.join(' / ')}, by ${rows.length} rules`
    for (const [rule, row] of rows.slice(0, 60)) yield `${Object.values(row).join(' / ')}  ${rule}`
  }
}

async function compare(t: Test, drawn: readonly Mistake[], minor: number, program: Program): Promise<void> {
  const texts = drawn.map(({ pod }) => JSON.stringify(pod))
  const { refusals } = await judge(t, texts, program)
  const table = new Table()
  const found: Record<'published' | 'silent' | 'refused', string[]> = { published: [], silent: [], refused: [] }
  for (const [index, { base, field, kind }] of drawn.entries()) {
    const [text, refusal] = [texts[index] ?? '', refusals[index]]
    const error = await errorOf(text, { kubelet: minor })
    const what = `${base}: ${field}: ${kind}: ${refusal ?? error}`
    if (refusal === undefined) {
      if (error !== undefined && !error.endsWith('never run the pod')) found.refused.push(what)
      continue
    }
    if (error === undefined) found.published.push(what)
    const said = await saidOf(text)
    table.add(refusal, said)
    if (said === 'published') found.silent.push(what)
  }
  t.comment(`1.${minor}, ${drawn.length} of ${mistakes} mistakes`, ...table.lines())
  t.strictSame(found.published.slice(0, 5), [], `1.${minor} refuses ${found.published.length} that holdfast publishes`)
  t.strictSame(found.refused.slice(0, 5), [], `1.${minor} takes ${found.refused.length} that holdfast refuses`)
  t.strictSame(found.silent.slice(0, 5), [], `without a word where the kubelet is not known: ${found.silent.length}`)
}

for (const from of all || replaying ? [seed] : [1, seed]) {
  const drawn = drawMistakes(from, count)
  for (const [minor, program] of kubelets)
    await t.test(
      `holdfast publishes no pod that kubelet 1.${minor} refuses, and refuses none that it takes, HOLDFAST_SEED=${from}`,
      { timeout: all ? 3_600_000 : 240_000 },
      (t) => compare(t, drawn, minor, program),
    )
}
