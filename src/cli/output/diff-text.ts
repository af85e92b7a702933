import type { EntryChange } from '../../directories/compare.js'
import type { Paint } from './colour.js'
import { objectText, table, type Cell } from './table.js'

/* The output of `diff`. */

/** One of the two contents, as `-o json` shows it. */
export interface ShownSide {
  /** `disk`: the present content; `sequence`: a published one; `desired`: the source's. */
  readonly what: 'disk' | 'sequence' | 'desired'
  /** Of its record; null where there is none. */
  readonly sequence: number | null
  /** RFC 3339. */
  readonly publishedAt: string | null
  readonly objects: readonly {
    readonly kind: string
    readonly namespace: string
    readonly name: string
    readonly uid: string
    readonly resourceVersion: string
  }[]
}

type Facts = Omit<NonNullable<EntryChange['from']>, 'mode'> & {
  /** In octal, as chmod(1) takes it. */
  readonly mode: string
}

type ShownEntry = Omit<EntryChange, 'from' | 'to'> & { readonly from: Facts | null; readonly to: Facts | null }

/** The document of `diff -o json`. */
export interface ShownDiff {
  readonly path: string
  readonly equal: boolean
  readonly from: ShownSide
  readonly to: ShownSide
  /** Reasons why the directory does not become what the source says. */
  readonly notes: readonly string[]
  readonly entries: readonly ShownEntry[]
}

const colours = { added: 'green', removed: 'red', changed: 'yellow', same: 'grey' } as const

/** The table, and below it the changes of certificates and texts. */
export function diffText({ path, equal, from, to, notes, entries }: ShownDiff, paint: Paint): string {
  const changes = entries.filter(({ change }) => change !== 'same')
  const same = entries.length - changes.length
  const head = [
    `from  ${sideText(from)}\n`,
    `to    ${sideText(to)}\n`,
    ...notes.map((note) => paint('yellow', printable(note)) + '\n'),
  ]
  const count = same === 1 ? '1 entry is the same' : `${same} entries are the same`
  if (equal) return [...head, `${path}: no difference; ${count}\n`].join('')
  const rows: (string | Cell)[][] = [['CHANGE', 'PATH', 'DIFFERS', 'MODE', 'OWNER', 'SIZE', 'OBJECTS']]
  for (const entry of changes) {
    const { change, differs } = entry
    const column = (fact: (facts: Facts) => string) => arrow(entry.from && fact(entry.from), entry.to && fact(entry.to))
    rows.push([
      { text: change, paint: (text) => paint(colours[change], text) },
      printable(entry.path),
      differs.length === 0 ? '-' : differs.join(', '),
      column(({ mode }) => mode),
      column(({ owner }) => owner),
      column(({ size, type }) => (size === null ? type : String(size))),
      column(({ objects }) => objects.join(', ') || '-'),
    ])
  }
  const details = changes.flatMap((entry) => [...certificateTexts(entry), ...textLines(entry, paint)])
  const shown = changes.length > 0 ? [table(rows)] : []
  return [...head, '\n', ...shown, ...(same > 0 ? [`${count}\n`] : []), ...details].join('')
}

function sideText({ what, sequence, publishedAt, objects }: ShownSide): string {
  const published =
    sequence === null ? 'holdfast has published nothing there' : `published as ${sequence} at ${publishedAt}`
  const names = { disk: `what is on the disk; ${published}`, sequence: published, desired: 'what the source says' }
  return [names[what], ...(objects.length > 0 ? [objects.map(objectText).join(', ')] : [])].join(': ')
}

function arrow(before: string | null, after: string | null): string {
  if (before === null || after === null || before === after) return after ?? before ?? ''
  return `${before} -> ${after}`
}

type ComparedCertificate = EntryChange['certificates'][number]['to']

const fields = {
  subject: ({ subject }) => subject,
  names: ({ alternativeNames }) => alternativeNames.join(', ') || '-',
  issuer: ({ issuer }) => issuer,
  serial: ({ serial }) => serial,
  from: ({ notBefore }) => notBefore,
  until: ({ notAfter }) => notAfter,
  key: ({ key }) => (key === null ? '-' : `${key.path} ${key.matches ? 'belongs to it' : 'does NOT belong to it'}`),
} as const satisfies Record<string, (certificate: NonNullable<ComparedCertificate>) => string>

function certificateTexts({ path, certificates }: ShownEntry): string[] {
  return certificates.flatMap(({ from, to }) => {
    const change = from === null ? 'a new certificate' : to === null ? 'a certificate that goes' : 'certificate'
    const rows = Object.entries(fields).map(([name, of]) => [
      '',
      name,
      printable(arrow(from && of(from), to && of(to))),
    ])
    return [`\n${printable(path)}: ${change}\n`, table(rows)]
  })
}

function textLines({ path, text }: ShownEntry, paint: Paint): string[] {
  if (text === null) return []
  if ('hidden' in text) return [`\n${printable(path)}: its text is not shown: ${text.hidden}\n`]
  const colour = { '+': 'green', '-': 'red', '@': 'blue' } as const
  const lines = text.lines.map((line) => {
    const sign = line[0]
    const shown = printable(line)
    return `${sign === '+' || sign === '-' || sign === '@' ? paint(colour[sign], shown) : shown}\n`
  })
  return [`\n${printable(path)}:\n`, ...lines]
}

/** Writes characters that would control a terminal, or hide there, as escapes. */
function printable(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
