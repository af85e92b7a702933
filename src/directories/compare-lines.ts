/** A unified diff of two texts. */

/** Lines of each text: a longer one is not compared line by line. */
const mostLines = 20_000

/** Lines that are only in one of them, in all: the search takes their square in time and memory. */
const mostEdits = 1_000

/** Equal lines that are shown around a change. */
const around = 3

type FileLines = { readonly lines: readonly string[] } | { readonly hidden: string }

/** undefined: there is no such file. */
export function compareLines(before: Uint8Array | undefined, after: Uint8Array | undefined): FileLines {
  const [old, now] = [linesOf(before), linesOf(after)]
  if (old === undefined || now === undefined) return { hidden: 'it is no text in UTF-8' }
  if (old.length > mostLines || now.length > mostLines) return { hidden: `it has more than ${mostLines} lines` }
  const edits = editsBetween(old, now)
  if (edits === undefined) return { hidden: 'too many of its lines are others' }
  return { lines: hunks(edits) }
}

/** Each with its line feed: a last line without one is another line. */
function linesOf(content: Uint8Array | undefined): string[] | undefined {
  if (content === undefined) return []
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content)
    return text.includes('\0') ? undefined : (text.match(/[^\n]*\n|[^\n]+$/g) ?? [])
  } catch {
    return undefined
  }
}

interface LineEdit {
  readonly sign: ' ' | '-' | '+'
  readonly line: string
}

/** Myers, "An O(ND) Difference Algorithm and Its Variations" (1986); undefined where too much differs. */
function editsBetween(old: readonly string[], now: readonly string[]): LineEdit[] | undefined {
  const most = Math.min(old.length + now.length, mostEdits)
  // Where so many edits lead at most, as an index of `old`, by the diagonal: that index less the one of `now`.
  const furthest = new Int32Array(2 * most + 3)
  const at = (diagonal: number): number => diagonal + most + 1
  const trace: Int32Array[] = []
  for (let edits = 0; edits <= most; edits++) {
    trace.push(furthest.slice())
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const before = isAddition(furthest, at, edits, diagonal) ? diagonal + 1 : diagonal - 1
      let x = (furthest[at(before)] ?? 0) + (before < diagonal ? 1 : 0)
      while (x < old.length && x - diagonal < now.length && old[x] === now[x - diagonal]) x++
      furthest[at(diagonal)] = x
      if (x >= old.length && x - diagonal >= now.length) return walkBack(trace, at, old, now)
    }
  }
  return undefined
}

/** Whether the last edit to a diagonal adds a line, and does not remove one. */
function isAddition(furthest: Int32Array, at: (diagonal: number) => number, edits: number, diagonal: number): boolean {
  if (Math.abs(diagonal) === edits) return diagonal === -edits
  return (furthest[at(diagonal - 1)] ?? 0) < (furthest[at(diagonal + 1)] ?? 0)
}

function walkBack(
  trace: readonly Int32Array[],
  at: (diagonal: number) => number,
  old: readonly string[],
  now: readonly string[],
): LineEdit[] {
  const edits: LineEdit[] = []
  let [x, y] = [old.length, now.length]
  for (let count = trace.length - 1; count >= 0; count--) {
    const furthest = trace[count] ?? new Int32Array()
    const adds = isAddition(furthest, at, count, x - y)
    const before = x - y + (adds ? 1 : -1)
    const fromX = count === 0 ? 0 : (furthest[at(before)] ?? 0)
    const fromY = count === 0 ? 0 : fromX - before
    while (x > fromX && y > fromY) {
      edits.push({ sign: ' ', line: old[--x] ?? '' })
      y--
    }
    if (count === 0) break
    edits.push(adds ? { sign: '+', line: now[--y] ?? '' } : { sign: '-', line: old[--x] ?? '' })
  }
  return edits.reverse()
}

/** As diff -u prints them, without the names of the files. */
function hunks(edits: readonly LineEdit[]): string[] {
  const shown: string[] = []
  let [x, y] = [0, 0]
  for (let index = 0; index < edits.length;) {
    const end = endOfHunk(edits, index)
    if (end === undefined) break
    const first = Math.max(index, edits.findIndex(({ sign }, here) => here >= index && sign !== ' ') - around)
    x += first - index
    y += first - index
    const hunk = edits.slice(first, end)
    const [removed, added] = [hunk.filter(({ sign }) => sign !== '+'), hunk.filter(({ sign }) => sign !== '-')]
    shown.push(`@@ -${hunkRange(x, removed.length)} +${hunkRange(y, added.length)} @@`, ...hunk.flatMap(linesOfEdit))
    x += removed.length
    y += added.length
    index = end
  }
  return shown
}

/** After the last line that is shown with the next change; undefined: there is no more change. */
function endOfHunk(edits: readonly LineEdit[], from: number): number | undefined {
  let end: number | undefined
  for (let index = from; index < edits.length; index++) {
    if (edits[index]?.sign === ' ') {
      if (end !== undefined && index - end >= 2 * around) break
    } else end = index + 1
  }
  return end === undefined ? undefined : Math.min(end + around, edits.length)
}

/** From 1; before the first line, where there are none. */
function hunkRange(start: number, count: number): string {
  return count === 1 ? `${start + 1}` : `${count === 0 ? start : start + 1},${count}`
}

function linesOfEdit({ sign, line }: LineEdit): string[] {
  return line.endsWith('\n') ? [sign + line.slice(0, -1)] : [sign + line, '\\ No newline at end of file']
}
