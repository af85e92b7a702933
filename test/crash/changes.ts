import ts from 'typescript'
import { type Core, isChain, isWrapper, type Step, wholeChain } from './places.js'

/** Part of a source, and what stands there instead. */
export interface Edit {
  readonly file: string
  readonly start: number
  readonly end: number
  readonly text: string
}

/** A change of one place in the core. */
export interface Change {
  /** Throws where the place is not there, or is not the only one. */
  readonly edits: (core: Core) => readonly Edit[]
  readonly isQuoted?: true
}

/** The function that a place stands in, and the steps from there. */
type Where = readonly [owner: string, ...steps: Step[]]

function edit(node: ts.Node, text: string, end = node.end): Edit {
  return { file: node.getSourceFile().fileName, start: node.getStart(), end, text }
}

const at =
  (change: (place: ts.Node) => Edit | undefined) =>
  (...[owner, ...steps]: Where): Change => ({
    edits(core) {
      const done = change(core.find(owner, steps))
      if (done === undefined) throw new Error(`${[owner, ...steps].join(' › ')} is no place for this change`)
      return [done]
    },
  })

/** The statement around a place, with the condition that it alone stands under. */
function statementOf(place: ts.Node): ts.Node {
  let node = place
  while (!ts.isStatement(node)) node = node.parent
  const { parent } = node
  return ts.isIfStatement(parent) && parent.thenStatement === node && !parent.elseStatement ? statementOf(parent) : node
}

/** Takes a statement out. */
export const drop = at((place) => edit(statementOf(place), ';'))

/** Takes a condition, flag, element, property or call out of the chain, list or object around it. */
export const without = at(takenOut)

function takenOut(place: ts.Node): Edit | undefined {
  for (let node = place; !ts.isStatement(node) && !ts.isFunctionLike(node); node = node.parent) {
    const { parent } = node
    if (isChain(parent)) return edit(parent, (node === parent.left ? parent.right : parent.left).getText())
    const list = ts.isArrayLiteralExpression(parent)
      ? parent.elements
      : ts.isObjectLiteralExpression(parent)
        ? parent.properties
        : undefined
    if (list === undefined) continue
    const left = [...list]
      .filter((one) => one !== node)
      .map((one) => one.getText())
      .join(', ')
    return edit(parent, ts.isArrayLiteralExpression(parent) ? `[${left}]` : `{ ${left} }`)
  }
  const isCallOf = ts.isCallExpression(place) && ts.isPropertyAccessExpression(place.expression)
  return isCallOf ? edit(place, place.expression.expression.getText()) : undefined
}

type Value = undefined | boolean | number | string | readonly []

function textOf(value: Value): string {
  if (typeof value === 'object') return '[]'
  return typeof value === 'string' ? `'${value}'` : String(value)
}

/** Puts a value in the place of an expression there. */
export const becomes = (value: Value, ...where: Where): Change => at((place) => edit(place, textOf(value)))(...where)

/** Does what stands there, and takes this value for what came of it. */
export const answers = (value: Value, ...where: Where): Change =>
  at((place) => {
    const whole = ts.isAwaitExpression(place.parent) ? place.parent : place
    return edit(whole, `(${whole.getText()}, ${textOf(value)})`)
  })(...where)

export const negate = at((place) => edit(place, `!(${place.getText()})`))

/** Puts a place where the whole stands that it is a part of: an argument for its call, a branch for both. */
export const keep = at((place) => edit(wholeOf(place), place.getText()))

function wholeOf(place: ts.Node): ts.Node {
  let node = place.parent
  while (isWrapper(node)) node = node.parent
  return isChain(node) ? wholeChain(node) : node
}

/** Puts another operator between the same operands. */
export const operator = (sign: string, ...where: Where): Change =>
  at((place) => (ts.isBinaryExpression(place) ? edit(place.operatorToken, sign) : undefined))(...where)

/** Moves the statement of one place of a function before that of another. */
export const move = (owner: string, what: Step, before: Step): Change => ({
  edits(core) {
    const [moved, next] = [statementOf(core.find(owner, [what])), statementOf(core.find(owner, [before]))]
    return [edit(next, `${moved.getText()}\n`, next.getStart()), edit(moved, ';')]
  },
})

/** Does what a statement does only before that of another place. */
export const postpone = (what: Where, until: Where): Change => ({
  edits(core) {
    const find = ([owner, ...steps]: Where): ts.Node => statementOf(core.find(owner, steps))
    const [moved, next] = [find(what), find(until)]
    const run = 'for (const one of globalThis.postponed?.splice(0) ?? []) await one().catch(() => undefined)\n'
    return [
      edit(moved, `;(globalThis.postponed ??= []).push(async () => { ${moved.getText()} })`),
      edit(next, run, next.getStart()),
    ]
  },
})

/** What no other change says: in a function, the text `find`, which stands there once, becomes `replace`. */
export const quoted = (owner: string, find: string, replace: string): Change => ({
  isQuoted: true,
  edits(core) {
    const owners = core.owners(owner).filter((place) => place.getText().includes(find))
    const [place] = owners
    const parts = place?.getText().split(find) ?? []
    const [before = ''] = parts
    if (place === undefined || owners.length !== 1 || parts.length !== 2)
      throw new Error(`${owner} does not have this once:\n${find}`)
    const start = place.getStart() + before.length
    return [{ file: place.getSourceFile().fileName, start, end: start + find.length, text: replace }]
  },
})

/** Throws where two of the edits are of one place. */
export function edited(text: string, edits: readonly Edit[]): string {
  let after = ''
  let from = 0
  for (const one of [...edits].sort((a, b) => a.start - b.start)) {
    if (one.start < from) throw new Error(`${one.file} is changed twice at ${one.start}`)
    after += text.slice(from, one.start) + one.text
    from = one.end
  }
  return after + text.slice(from)
}
