import ts from 'typescript'
import { isLocal } from './mutants/shown.js'

/**
 * One step towards a place. A text leads to the node of this name below the place before: a called function, a property, a word or an
 * operator of the language, or a literal in quotes. It stands there once; `name 2/3` is the second of three. A number leads to that part of
 * the place before, counted from 0. No step names a variable, so variables are free to change their names.
 */
export type Step = string | number

/** The core's sources, which find a place by its function, in a file of any name. */
export class Core {
  /** By `function`, `Class.member`, or the constant at the top of a file. */
  readonly #owners = new Map<string, ts.Node[]>()

  /** `texts`: by the paths of their files. */
  constructor(texts: Iterable<readonly [string, string]>) {
    for (const [file, text] of texts) {
      const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2023, true)
      for (const statement of source.statements) this.#add(statement)
    }
  }

  #add(statement: ts.Statement): void {
    if (ts.isFunctionDeclaration(statement) && statement.body) this.#name(statement.name?.text, statement)
    if (ts.isVariableStatement(statement))
      for (const one of statement.declarationList.declarations) this.#name(one.name.getText(), one)
    if (!ts.isClassDeclaration(statement)) return
    for (const member of statement.members) {
      const name = ts.isConstructorDeclaration(member) ? 'constructor' : member.name?.getText()
      this.#name(`${statement.name?.text}.${name}`, member)
    }
  }

  #name(name: string | undefined, owner: ts.Node): void {
    if (name !== undefined) this.#owners.set(name, [...(this.#owners.get(name) ?? []), owner])
  }

  /** Throws where the steps lead to no place below an owner of this name, or to several. */
  find(name: string, steps: readonly Step[]): ts.Node {
    const owners = this.#owners.get(name) ?? []
    const [place, ...others] = owners.flatMap((owner) => walk(owner, steps) ?? [])
    if (place === undefined || others.length > 0)
      throw new Error(
        `${[name, ...steps].join(' › ')} leads to ${place ? 1 + others.length : 0} places; ${owners.length} are called ${name}`,
      )
    return place
  }

  owners(name: string): readonly ts.Node[] {
    return this.#owners.get(name) ?? []
  }
}

function walk(owner: ts.Node, steps: readonly Step[]): ts.Node | undefined {
  let at: ts.Node | undefined = owner
  for (const step of steps) at = at && (typeof step === 'number' ? partsOf(at)[step] : named(at, step))
  return at
}

function named(from: ts.Node, step: string): ts.Node | undefined {
  const [, name = step, nth = '1', of = '1'] = /^(.+) (\d+)\/(\d+)$/.exec(step) ?? []
  const found = everyPlace(from, name)
  return found.length === Number(of) ? found[Number(nth) - 1] : undefined
}

/** All that has this name below a node, in the order in which the names are written. */
function everyPlace(from: ts.Node, name: string): ts.Node[] {
  const found: ts.Node[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node) || (ts.isBindingElement(node.parent) && node.parent.initializer !== node)) return
    if (node !== from && namesOf(node).includes(name)) found.push(node)
    ts.forEachChild(node, visit)
  }
  visit(from)
  return found.sort((a, b) => nameStart(a) - nameStart(b))
}

/** Of two calls in a chain, the first one in the text comes first. */
function nameStart(node: ts.Node): number {
  if (ts.isCallExpression(node) || ts.isNewExpression(node)) return nameStart(node.expression)
  return ts.isPropertyAccessExpression(node) ? node.name.getStart() : node.getStart()
}

const words: ReadonlyMap<ts.SyntaxKind, string> = new Map([
  [ts.SyntaxKind.IfStatement, 'if'],
  [ts.SyntaxKind.WhileStatement, 'while'],
  [ts.SyntaxKind.ForOfStatement, 'for'],
  [ts.SyntaxKind.ReturnStatement, 'return'],
  [ts.SyntaxKind.ConditionalExpression, '?'],
  [ts.SyntaxKind.ArrayLiteralExpression, '[]'],
  [ts.SyntaxKind.TrueKeyword, 'true'],
  [ts.SyntaxKind.FalseKeyword, 'false'],
])

/** The names by which a step finds a node: one, or none. */
function namesOf(node: ts.Node): readonly string[] {
  const word = words.get(node.kind)
  if (word !== undefined) return [word]
  if (ts.isStringLiteral(node) || ts.isNumericLiteral(node)) return [`'${node.text}'`]
  if (ts.isBinaryExpression(node)) return wholeChain(node) === node ? [node.operatorToken.getText()] : []
  if (ts.isShorthandPropertyAssignment(node) || ts.isPropertyAssignment(node)) return [node.name.getText()]
  if (isCall(node)) return nameOf(node.expression)
  return isCall(node.parent) && node.parent.expression === node ? [] : nameOf(node)
}

const isCall = (node: ts.Node): node is ts.CallExpression | ts.NewExpression =>
  ts.isCallExpression(node) || ts.isNewExpression(node)

/** What stands behind the last dot, or alone and is no variable. */
function nameOf(node: ts.Node): readonly string[] {
  if (ts.isPropertyAccessExpression(node)) return [node.name.text]
  if (!ts.isIdentifier(node) || isLocal(node)) return []
  const isNameOfParent = 'name' in node.parent && node.parent.name === node
  return isNameOfParent ? [] : [node.text]
}

const connectives: ReadonlySet<ts.SyntaxKind> = new Set([
  ts.SyntaxKind.AmpersandAmpersandToken,
  ts.SyntaxKind.BarBarToken,
  ts.SyntaxKind.QuestionQuestionToken,
  ts.SyntaxKind.BarToken,
  ts.SyntaxKind.AmpersandToken,
])

/** Conditions or flags that are joined, each of which may go. */
export const isChain = (node: ts.Node): node is ts.BinaryExpression =>
  ts.isBinaryExpression(node) && connectives.has(node.operatorToken.kind)

/** `a || b || c`, of which `a || b` is a part. */
export function wholeChain(node: ts.BinaryExpression): ts.BinaryExpression {
  const { parent, operatorToken } = node
  const goesOn = isChain(parent) && parent.left === node && parent.operatorToken.kind === operatorToken.kind
  return goesOn ? wholeChain(parent) : node
}

function operandsOf(node: ts.BinaryExpression): ts.Node[] {
  const { left, right } = node
  return [...(ts.isBinaryExpression(left) && wholeChain(left) !== left ? operandsOf(left) : [left]), right]
}

/** What stands around a value, and is not another one. */
export const isWrapper = (node: ts.Node): node is ts.AwaitExpression | ts.ParenthesizedExpression =>
  ts.isAwaitExpression(node) || ts.isParenthesizedExpression(node)

/** The arguments of a call, elements, operands, a condition and its branches, statements, or the one value that is inside. */
function partsOf(node: ts.Node): readonly (ts.Node | undefined)[] {
  if (isWrapper(node)) return partsOf(node.expression)
  if (isCall(node)) return node.arguments ?? []
  if (ts.isArrayLiteralExpression(node)) return node.elements
  if (ts.isBinaryExpression(node)) return operandsOf(node)
  if (ts.isIfStatement(node)) return [node.expression, node.thenStatement, node.elseStatement]
  if (ts.isConditionalExpression(node)) return [node.condition, node.whenTrue, node.whenFalse]
  if (ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node)) return node.body?.statements ?? []
  if (ts.isVariableStatement(node)) return node.declarationList.declarations.map(({ initializer }) => initializer)
  if (ts.isVariableDeclaration(node) || ts.isPropertyDeclaration(node) || ts.isPropertyAssignment(node))
    return [node.initializer]
  const isAround =
    ts.isReturnStatement(node) ||
    ts.isWhileStatement(node) ||
    ts.isForOfStatement(node) ||
    ts.isPropertyAccessExpression(node) ||
    ts.isExpressionStatement(node) ||
    ts.isSpreadElement(node)
  return isAround ? [node.expression] : []
}
