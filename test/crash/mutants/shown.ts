import ts from 'typescript'

/** Every identifier below. */
export function namesIn(node: ts.Node): Set<string> {
  const names = new Set<string>()
  const visit = (at: ts.Node): void => {
    if (ts.isIdentifier(at)) names.add(at.text)
    ts.forEachChild(at, visit)
  }
  visit(node)
  return names
}

/** By the statement at the top of a file: the names of parameters and variables below it. */
const known = new WeakMap<ts.Node, ReadonlySet<string>>()

function localsOf(top: ts.Node): ReadonlySet<string> {
  const found = known.get(top)
  if (found) return found
  const names = new Set<string>()
  const visit = (at: ts.Node): void => {
    const isLocal =
      ts.isParameter(at) || (ts.isVariableDeclaration(at) && at.parent.parent.parent.kind !== ts.SyntaxKind.SourceFile)
    if ((isLocal || ts.isBindingElement(at)) && ts.isIdentifier(at.name)) names.add(at.name.text)
    ts.forEachChild(at, visit)
  }
  visit(top)
  known.set(top, names)
  return names
}

/** The property that an identifier names; the rest name values. */
function isProperty(node: ts.Identifier): boolean {
  const { parent } = node
  if (ts.isPropertyAccessExpression(parent)) return parent.name === node
  if (ts.isBindingElement(parent)) return parent.propertyName === node
  return (
    (ts.isPropertyAssignment(parent) || ts.isMethodDeclaration(parent) || ts.isPropertySignature(parent)) &&
    parent.name === node
  )
}

/** Whether an identifier names a parameter or variable of a function: another name would make the same program. */
export function isLocal(node: ts.Identifier): boolean {
  let top: ts.Node = node
  while (!ts.isSourceFile(top.parent)) top = top.parent
  return !isProperty(node) && localsOf(top).has(node.text)
}

/**
 * The text of a node without the names of its parameters and variables, so that new names do not change it. `called`: the replacement of
 * each.
 */
export function shown(node: ts.Node, called: (name: string) => string = () => '_'): string {
  const source = node.getSourceFile()
  let text = ''
  let at = node.getStart(source)
  const visit = (part: ts.Node): void => {
    if (ts.isIdentifier(part) && isLocal(part)) {
      const { parent } = part
      const start = part.getStart(source)
      const isShort =
        ts.isShorthandPropertyAssignment(parent) ||
        (ts.isObjectBindingPattern(parent.parent) &&
          ts.isBindingElement(parent) &&
          !parent.propertyName &&
          !parent.dotDotDotToken &&
          parent.name === part)
      text += source.text.slice(at, start) + (isShort ? `${part.text}: ` : '') + called(part.text)
      at = part.end
    }
    ts.forEachChild(part, visit)
  }
  visit(node)
  return text + source.text.slice(at, node.end)
}

/** The same program with other names for its parameters and variables, line by line. */
export function withOtherNames(text: string): string {
  const source = ts.createSourceFile('a.ts', text, ts.ScriptTarget.ES2023, true)
  return text.slice(0, source.getStart()) + shown(source, (name) => `${name}Anew`)
}
