import type { Paint } from './colour.js'

const looks = {
  fatal: ['FATAL', 'red'],
  error: ['ERROR', 'red'],
  warn: ['WARN ', 'yellow'],
  info: ['INFO ', 'green'],
  debug: ['DEBUG', 'blue'],
  trace: ['TRACE', 'grey'],
} as const

function isLevel(value: unknown): value is keyof typeof looks {
  return typeof value === 'string' && Object.hasOwn(looks, value)
}

/** Fields that the sentence says already, or that no reader of a terminal wants. */
const hidden = new Set(['level', 'time', 'msg', 'operation', 'directory', 'objects', 'causes'])

/** One line of JSON as a person reads it: `12:00:01 INFO  Published  the sentence  key=value`. */
export function readableLine(line: string, paint: Paint): string {
  let entry: Record<string, unknown>
  try {
    entry = JSON.parse(line) as Record<string, unknown>
  } catch {
    return line
  }
  const [label, colour] = looks[isLevel(entry.level) ? entry.level : 'info']
  const parts = [paint('grey', String(entry.time).slice(11, 19)), paint(colour, label)]
  if (typeof entry.reason === 'string') parts.push(paint('bold', entry.reason))
  if (typeof entry.msg === 'string') parts.push(entry.msg)
  for (const [name, value] of Object.entries(entry)) {
    if (hidden.has(name) || name === 'reason') continue
    parts.push(paint('grey', `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`))
  }
  return `${parts.join(' ')}\n`
}
