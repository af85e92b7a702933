/** Only a test's own words kill a mutant; a hang, or a broken runner, does not. */
export type Verdict = 'killed' | 'survived' | 'hangs' | 'breaks'

export interface Answer {
  readonly verdict: Verdict
  /** The item that has answered; none where all of them pass. */
  readonly by: string
}

/** What V8 says of code that was cut in the wrong place: no test has looked at anything then. */
const broken =
  /Cannot (read|set) properties of|is not (a function|iterable|defined|a constructor)|Cannot destructure|Cannot convert|Cannot access|Cannot mix BigInt|before initialization|Assignment to constant|Maximum call stack|Unexpected type|must be of type|ERR_INVALID|ERR_OUT_OF_RANGE/

/** What failures in TAP say, the lines of the tests' sources left out. */
function failures(tap: string): string[] {
  const found: string[] = []
  const pattern = /^( *)not ok (?!.*# TODO)(.*)\n((?:\1 {2}.*\n|\s*\n)*)/gm
  for (const [, indent = '', title = '', diagnostics = ''] of tap.matchAll(pattern)) {
    // A test that fails since one inside it does: that one has been asked.
    if (title.includes('# time=')) continue
    const source = new RegExp(`^${indent}  source: .*\\n(?:${indent}   .*\\n|\\s*\\n)*`, 'm')
    found.push(`${title}\n${diagnostics.replace(source, '')}`)
  }
  return found
}

/** Whether it is a test that says so: an uncaught mistake of the language is none, and neither is a test that never ends. */
function judge(text: string): Verdict {
  if (/^(\d+ - )?(test unfinished|timeout)/.test(text)) return 'hangs'
  if (broken.test(text)) return 'breaks'
  if (text.includes('tapCaught:') && /^\s*type: (Type|Reference|Range|Syntax)Error$/m.test(text)) return 'breaks'
  return 'killed'
}

/** What an item has answered, by its exit code, which is none where it was stopped, and its words. */
export function answerOf(name: string, code: number | null, output: string, errors: string): Answer {
  if (name.startsWith('model: ') && code !== null && code !== 0) {
    return { verdict: output.includes('"states"') && !broken.test(errors) ? 'killed' : 'breaks', by: name }
  }
  const verdicts = failures(output).map(judge)
  if (verdicts.includes('killed')) return { verdict: 'killed', by: name }
  if (code === null) return { verdict: 'hangs', by: name }
  return code === 0 ? { verdict: 'survived', by: '' } : { verdict: verdicts[0] ?? 'breaks', by: name }
}
