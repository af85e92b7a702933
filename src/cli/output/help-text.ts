/* Help that fits its terminal: commander wraps what it lays out, and leaves what stands behind that as it is. */

/** Paragraphs and lines of examples that are too wide, wrapped; an example goes on behind a backslash, as a shell takes it. */
export function fitHelp(text: string, width: number): string {
  return text
    .split(/(?<=\n)(?=\n)|(?<=\n)(?=[ \t])|(?<=\n[ \t][^\n]*\n)/)
    .map((block) => (isWide(block, width) ? wrapBlock(block, width) : block))
    .join('')
}

function isWide(block: string, width: number): boolean {
  return block.split('\n').some((line) => line.length > width)
}

function wrapBlock(block: string, width: number): string {
  const [before = '', body = '', after = ''] = /^(\n*)([^]*?)(\n*)$/.exec(block)?.slice(1) ?? []
  return before + (/^\s/.test(body) ? wrapCommand(body, width) : wrapWords(body, width).join('\n')) + after
}

/** The words of a text in lines of at most `width`; a longer word has a line to itself. */
export function wrapWords(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(/\s+/).filter((one) => one !== '')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

/** Lines of which those that are too wide go on in further ones, indented by two. */
export function wrapLines(text: string, width: number): string {
  return text.replaceAll(/.+/g, (line) => (line.length <= width ? line : wrapWords(line, width - 2).join('\n  ')))
}

/** Breaks before a flag where it can, and never inside quotes. */
function wrapCommand(line: string, width: number): string {
  const indent = /^\s*/.exec(line)?.[0] ?? ''
  const lines: string[] = []
  let rest = line
  while (rest.length > width) {
    const ends = breaksIn(rest).filter((at) => at > indent.length + 4 && at + 2 <= width)
    const end = ends.findLast((at) => rest[at + 1] === '-') ?? ends.at(-1)
    if (end === undefined) break
    lines.push(`${rest.slice(0, end)} \\`)
    rest = `${indent.padEnd(4)}${rest.slice(end + 1)}`
  }
  return [...lines, rest].join('\n')
}

/** The blanks of a command line outside of quotes. */
function breaksIn(line: string): number[] {
  let quote = ''
  return line.split('').flatMap((sign, at) => {
    if (quote !== '') quote = sign === quote ? '' : quote
    else if (sign === '"' || sign === "'") quote = sign
    return sign === ' ' && quote === '' ? [at] : []
  })
}
