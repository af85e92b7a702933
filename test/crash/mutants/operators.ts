import ts from 'typescript'
import { namesIn, shown } from './shown.js'

/** A change of a source, and the place that a test has to pass to notice: an edit of the text, by offsets. */
export interface Change {
  readonly operator: keyof typeof operators
  readonly start: number
  readonly end: number
  readonly text: string
  /** The node that runs where the change can show. */
  readonly site: ts.Node
  /** The changed text, for the mutant's name. */
  readonly of: string
}

type Found = Omit<Change, 'operator'>
type Operator = (node: ts.Node, source: ts.SourceFile) => readonly Found[]

function edit(node: ts.Node, source: ts.SourceFile, text: string, site = node, of = shown(node)): Found {
  return { start: node.getStart(source), end: node.getEnd(), text, site, of }
}

/** A statement that is one call, assignment or count; a constructor cannot do without its `super`. */
const dropped: Operator = (node, source) => {
  if (!ts.isExpressionStatement(node)) return []
  const { expression } = node
  if (ts.isCallExpression(expression) && expression.expression.kind === ts.SyntaxKind.SuperKeyword) return []
  return [edit(node, source, ';')]
}

/** Errors swallowed: a throw goes, or a caught error. */
const swallowed: Operator = (node, source) => {
  if (ts.isThrowStatement(node)) return [edit(node, source, ';')]
  if (!ts.isCatchClause(node) || node.block.statements.length === 0) return []
  const [first = node.block] = node.block.statements
  return [edit(node.block, source, '{}', first)]
}

function conditionOf(node: ts.Node): ts.Expression | undefined {
  if (ts.isIfStatement(node) || ts.isWhileStatement(node) || ts.isDoStatement(node)) return node.expression
  if (ts.isConditionalExpression(node) || ts.isForStatement(node)) return node.condition
  return undefined
}

const negated: Operator = (node, source) => {
  const condition = conditionOf(node)
  return condition ? [edit(condition, source, `!(${condition.getText(source)})`)] : []
}

const comparisons: ReadonlyMap<ts.SyntaxKind, string> = new Map([
  [ts.SyntaxKind.LessThanToken, '<='],
  [ts.SyntaxKind.LessThanEqualsToken, '<'],
  [ts.SyntaxKind.GreaterThanToken, '>='],
  [ts.SyntaxKind.GreaterThanEqualsToken, '>'],
  [ts.SyntaxKind.EqualsEqualsEqualsToken, '!=='],
  [ts.SyntaxKind.ExclamationEqualsEqualsToken, '==='],
])

const compared: Operator = (node, source) => {
  if (!ts.isBinaryExpression(node)) return []
  const other = comparisons.get(node.operatorToken.kind)
  // An equality that is all of a condition is negated already.
  if (other === undefined || (other.endsWith('==') && conditionOf(node.parent) === node)) return []
  return [edit(node, source, `${node.left.getText(source)} ${other} ${node.right.getText(source)}`)]
}

/** Whether a literal stands for a value here, not for a type or the name of a property. */
function isValue(node: ts.Node): boolean {
  const { parent } = node
  return !ts.isTypeNode(parent) && !(ts.isPropertyAssignment(parent) && parent.name === node)
}

const counted: Operator = (node, source) => {
  if (!(ts.isNumericLiteral(node) || ts.isBigIntLiteral(node)) || !isValue(node)) return []
  const one = ts.isBigIntLiteral(node) ? '1n' : '1'
  const { parent } = node
  const of = shown(parent).length <= 80 ? shown(parent) : shown(node)
  return [edit(node, source, `(${node.getText(source)} + ${one})`, node, of)]
}

/** A flag that is missing among others, and a mask that lets everything pass. */
const unflagged: Operator = (node, source) => {
  if (!ts.isBinaryExpression(node)) return []
  const { left, right, operatorToken } = node
  const of = shown(node)
  if (operatorToken.kind === ts.SyntaxKind.AmpersandToken) return [edit(node, source, left.getText(source), node, of)]
  if (operatorToken.kind !== ts.SyntaxKind.BarToken) return []
  const isChain = ts.isBinaryExpression(left) && left.operatorToken.kind === ts.SyntaxKind.BarToken
  const without = (gone: ts.Expression, rest: ts.Expression): Found =>
    edit(node, source, `(${rest.getText(source)})`, node, `${shown(gone)} of ${of}`)
  return [without(right, left), ...(isChain ? [] : [without(left, right)])]
}

/** An errno that is compared with, or stands in a list. */
const unrecognized: Operator = (node, source) => {
  if (!ts.isStringLiteral(node) || !/^E[A-Z0-9]{2,}$/.test(node.text) || !isValue(node)) return []
  if (ts.isPropertyAssignment(node.parent)) return []
  return [edit(node, source, "'ENONE'", node, shown(node.parent))]
}

const inverted: Operator = (node, source) => {
  const isTrue = node.kind === ts.SyntaxKind.TrueKeyword
  if ((!isTrue && node.kind !== ts.SyntaxKind.FalseKeyword) || !isValue(node)) return []
  return [edit(node, source, String(!isTrue), node, shown(node.parent))]
}

const connectives: ReadonlySet<ts.SyntaxKind> = new Set([
  ts.SyntaxKind.QuestionQuestionToken,
  ts.SyntaxKind.AmpersandAmpersandToken,
  ts.SyntaxKind.BarBarToken,
])

/** What comes behind `??`, `&&` and `||`. */
const shortened: Operator = (node, source) => {
  if (!ts.isBinaryExpression(node) || !connectives.has(node.operatorToken.kind)) return []
  return [edit(node, source, node.left.getText(source), node.right)]
}

/** One part less of a key or path that is put together. */
const merged: Operator = (node, source) => {
  if (!ts.isTemplateExpression(node) || ts.isTaggedTemplateExpression(node.parent)) return []
  const spans = node.templateSpans
  if (spans.length < 2 || [node.head, ...spans.map(({ literal }) => literal)].some(({ text }) => /\s/.test(text)))
    return []
  return spans.map(({ expression }) =>
    edit(expression, source, "''", expression, `${shown(expression)} of ${shown(node)}`),
  )
}

function declaredBy(node: ts.Statement): Set<string> {
  if (!ts.isVariableStatement(node)) return new Set()
  return new Set(node.declarationList.declarations.flatMap(({ name }) => [...namesIn(name)]))
}

function calls(node: ts.Node): boolean {
  if (ts.isFunctionLike(node)) return false
  if (ts.isCallExpression(node) || ts.isThrowStatement(node) || ts.isReturnStatement(node)) return true
  return ts.forEachChild(node, (child) => calls(child) || undefined) ?? false
}

/** What only asks, and ends the function or the turn of a loop, is seen by negating it. */
function isGuard(node: ts.Statement): boolean {
  if (!ts.isIfStatement(node) || node.elseStatement || calls(node.expression)) return false
  return ts.isReturnStatement(node.thenStatement) || ts.isContinueStatement(node.thenStatement)
}

const movable = (node: ts.Statement): boolean =>
  (ts.isExpressionStatement(node) ||
    ts.isIfStatement(node) ||
    ts.isForOfStatement(node) ||
    ts.isVariableStatement(node)) &&
  calls(node) &&
  !isGuard(node)

/** Two statements that stand side by side and do something, the other way round. */
const swapped: Operator = (node, source) => {
  if (!ts.isBlock(node) && !ts.isSourceFile(node) && !ts.isCaseClause(node)) return []
  return node.statements.flatMap((first, index) => {
    const second = node.statements[index + 1]
    if (second === undefined || !movable(first) || !movable(second)) return []
    if (ts.isVariableStatement(first) && ts.isVariableStatement(second)) return []
    const used = namesIn(second)
    if ([...declaredBy(first)].some((name) => used.has(name))) return []
    const text = `${second.getText(source)}\n${first.getText(source)}`
    const start = first.getStart(source)
    return [{ start, end: second.getEnd(), text, site: first, of: shown(first) }]
  })
}

export const operators = {
  dropped,
  swallowed,
  negated,
  compared,
  counted,
  unflagged,
  unrecognized,
  inverted,
  shortened,
  merged,
  swapped,
} as const satisfies Record<string, Operator>
