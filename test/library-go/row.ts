/** One line of the table of differences, and how to recognize its differences. */
import type { CaseName } from './cases.js'
import type { Difference } from './compare.js'

export interface Row {
  readonly libraryGo: string
  readonly holdfast: string
  readonly why: string
  /** Which differences are this one. */
  readonly shown?: Shown
  /** For what no tree, exit code or event shows: a test file, and a text in it. */
  readonly tested?: readonly [file: string, text: string]
}

export interface Shown {
  (difference: Difference): boolean
  /** Each of these must be seen: see `exactly`. */
  readonly lines?: readonly string[]
}

/** Just these differences of one case, as `lineOf` says them: neither more nor fewer. */
export function exactly(name: CaseName, ...lines: readonly string[]): Shown {
  const isShown = (difference: Difference): boolean => difference.case === name && lines.includes(lineOf(difference))
  return Object.assign(isShown, { lines: lines.map((line) => `${name}: ${line}`) })
}

/** A difference in one line: of what kind it is, where, and what stands there with library-go and with holdfast. */
export function lineOf({ what, path, theirs, ours }: Difference): string {
  const place = path === '' ? what : `${what} ${path}`
  return what.startsWith('only ') || what === 'form' ? place : `${place}: ${valueOf(theirs)} > ${valueOf(ours)}`
}

/** Of a manifest its revision. */
function valueOf(value: unknown): string {
  if (Array.isArray(value)) return value.join(', ')
  if (typeof value !== 'object' || value === null) return String(value)
  const { text, link } = value as { text?: string; link?: string }
  const revision = /"labels":\{"revision":"(\w+)"/.exec(text ?? '')?.[1]
  return revision === undefined ? (link ?? text ?? '') : `revision ${revision}`
}

/** What an installation of a revision leaves, and a refused one does not. */
export const installed = (directory: string): string[] =>
  ['', '/configmaps', '/configmaps/web-pod', '/configmaps/web-pod/pod.yaml', '/web-pod.yaml'].map(
    (path) => `only theirs ${directory}${path}`,
  )
/** How the installer ends that did not refuse, and how the other one. */
export const refused = (end: number): string[] => [
  `end: 0 > ${end}`,
  'events: Normal StaticPodInstallerCompleted > Warning StaticPodInstallerFailed',
  'mode manifests/web-pod.yaml: 0600 > 0644',
]
/** The same, for a refused command line: it makes no request, and no event. */
export const wrongUsage = [
  'end: 0 > 2',
  'events: Normal StaticPodInstallerCompleted > ',
  'only theirs manifests',
  'only theirs manifests/web-pod.yaml',
]
/** Differences of this kind below such paths, in these cases or in all. */
export const at =
  (what: Difference['what'], path: RegExp, ...names: CaseName[]) =>
  (difference: Difference) =>
    difference.what === what && path.test(difference.path) && (names.length === 0 || names.includes(difference.case))
export const either =
  (...some: ((difference: Difference) => boolean)[]) =>
  (difference: Difference) =>
    some.some((one) => one(difference))
export const ends =
  (theirs: (end: number) => boolean, ours: (end: number) => boolean) =>
  ({ what, theirs: left, ours: right }: Difference) =>
    what === 'end' && typeof left === 'number' && theirs(left) && ours(Number(right))
export const failed = (end: number): boolean => end !== 0
export const isMonitor = ({ case: name }: Difference): boolean => name.startsWith('monitor: ')
export const isSyncer = ({ case: name }: Difference): boolean => name.startsWith('cert-syncer: ')
