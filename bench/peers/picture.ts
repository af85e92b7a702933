/** The picture of docs/performance.md: flushes and milliseconds over the number of files, both axes logarithmic, as SVG. */
import { guarantee, type CostRow, type PowerRow } from './report.js'

export interface Line {
  readonly name: string
  /** What the peer keeps through power cuts, where that was looked at; `broken` is dashed. */
  readonly kept: string | undefined
  /** Files, and their cost. */
  readonly points: readonly (readonly [files: number, cost: number])[]
}

/** Colours that differ for colour-blind eyes, too (Okabe and Ito, Tol); the first is holdfast's. */
const colours = [
  ...['#d55e00', '#0072b2', '#009e73', '#cc79a7', '#e69f00'],
  ...['#56b4e9', '#000000', '#999999', '#b2a100', '#332288'],
]
const panel = { width: 330, height: 260, left: 52, top: 34, gap: 68 }
const rowHeight = 17
/** Between the least cost and 0, which a logarithmic axis cannot show. */
const zeroStrip = 18

/** Costs of publishing so many files of 4 KiB in one directory, as lines. */
export function linesOf(
  rows: readonly CostRow[],
  power: readonly PowerRow[],
  figure: 'flushes' | 'milliseconds',
): Line[] {
  const shown = [...new Set(rows.map(({ peer }) => peer))]
  return shown.map((peer) => ({
    name: peer.name,
    kept: guarantee(power, peer),
    points: rows
      .filter((row) => row.peer === peer)
      .map(({ files, cost }) => [files, cost[figure]] as const)
      .filter(([files]) => files > 0)
      .toSorted(([a], [b]) => a - b),
  }))
}

export function picture(title: string, panels: readonly { title: string; lines: readonly Line[] }[]): string {
  const kept = new Map(panels.flatMap(({ lines }) => lines.map((line) => [line.name, line.kept])))
  const names = [...kept.keys()]
  const colour = (name: string): string => colours[names.indexOf(name) % colours.length] ?? 'black'
  const width = panel.left + panels.length * (panel.width + panel.gap) - panel.gap + 16
  const legendTop = panel.top + panel.height + 46
  const columns = 2
  const height = legendTop + Math.ceil(names.length / columns) * rowHeight + 6
  const drawn = panels.map((each, index) => drawPanel(each, panel.left + index * (panel.width + panel.gap), colour))
  const legend = names.map((name, index) => {
    const x = panel.left + (index % columns) * ((width - panel.left) / columns)
    const y = legendTop + Math.floor(index / columns) * rowHeight
    const what = kept.get(name)
    const said = what === undefined ? name : `${name} (${what})`
    return `<path d="M${x} ${y - 4}h24" ${strokeOf(name, what, colour)}/>${text(x + 30, y, said)}`
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`,
    ` font-family="sans-serif" font-size="12"><title>${escape(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="white"/>`,
    ...drawn,
    ...legend,
    '</svg>\n',
  ].join('\n')
}

function drawPanel(
  { title, lines }: { title: string; lines: readonly Line[] },
  left: number,
  colour: (name: string) => string,
): string {
  const all = lines.flatMap(({ points }) => points)
  const across = scale(
    all.map(([files]) => files),
    left,
    left + panel.width,
  )
  const up = scale(
    all.map(([, cost]) => cost).filter((cost) => cost > 0),
    panel.top + panel.height - zeroStrip,
    panel.top,
    panel.top + panel.height,
  )
  const bottom = panel.top + panel.height
  const files = [...new Set(all.map(([count]) => count))].sort((a, b) => a - b)
  const parts = [text(left, panel.top - 14, title, 'start', 'bold')]
  for (const count of files) {
    parts.push(`<path d="M${across.at(count)} ${panel.top}V${bottom}" stroke="#eee"/>`)
    parts.push(text(across.at(count), bottom + 16, String(count), 'middle'))
  }
  for (const power of up.powers) {
    parts.push(`<path d="M${left} ${up.at(power)}h${panel.width}" stroke="#ddd"/>`)
    parts.push(text(left - 6, up.at(power) + 4, String(power), 'end'))
  }
  if (all.some(([, cost]) => cost === 0)) parts.push(text(left - 6, bottom + 4, '0', 'end'))
  parts.push(text(left + panel.width / 2, bottom + 32, 'files of 4 KiB', 'middle'))
  // The first lies above the others.
  for (const { name, kept, points } of lines.toReversed()) {
    const path = points.map(([count, cost], index) => `${index === 0 ? 'M' : 'L'}${across.at(count)} ${up.at(cost)}`)
    parts.push(`<path d="${path.join('')}" fill="none" ${strokeOf(name, kept, colour)}/>`)
    for (const [count, cost] of points) {
      parts.push(`<circle cx="${across.at(count)}" cy="${up.at(cost)}" r="2.5" fill="${colour(name)}"/>`)
    }
  }
  return parts.join('\n')
}

interface Scale {
  readonly at: (value: number) => number
  /** Powers of ten within it. */
  readonly powers: readonly number[]
}

/** `zero`: where 0 goes. */
function scale(values: readonly number[], from: number, to: number, zero = from): Scale {
  const [least, most] = [Math.log10(Math.min(...values)), Math.log10(Math.max(...values) * 1.1)]
  const at = (value: number): number => {
    if (value === 0) return zero
    return Math.round(10 * (from + ((Math.log10(value) - least) / (most - least)) * (to - from))) / 10
  }
  const powers: number[] = []
  for (let power = Math.ceil(least); power <= most; power++) powers.push(10 ** power)
  return { at, powers }
}

function strokeOf(name: string, kept: string | undefined, colour: (name: string) => string): string {
  const dashes = kept === 'broken' ? ' stroke-dasharray="5 4"' : ''
  return `stroke="${colour(name)}" stroke-width="${name === 'holdfast' ? 3 : 1.5}"${dashes}`
}

function text(x: number, y: number, what: string, anchor = 'start', face = 'normal'): string {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}" font-weight="${face}">${escape(what)}</text>`
}

const escape = (what: string): string => what.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
