/** Label selectors: parsed and matched as Kubernetes does, compared with a reference that knows no text. */
import fc from 'fast-check'
import t from 'tap'
import { parseSelector, SelectorError, selects, type Labels } from '../src/label-selector.js'
import { quote } from '../src/message-text.js'
import { holds } from './property.js'

const matches = (text: string, labels: Labels): boolean => selects(parseSelector(text), labels)

await t.test(
  'a selector knows the words of its grammar by their place, and none that an object inherits',
  async (t) => {
    t.equal(matches('in in (in)', { in: 'in' }), true)
    t.equal(matches('app', Object.create({ app: 'inherited' }) as Labels), false)
    t.equal(matches('constructor', {}), false)
  },
)

await t.test('a text that is no selector says why', async (t) => {
  const long = 'x'.repeat(64)
  const cases: [text: string, message: string][] = [
    ['', "a label's key is missing"],
    [',app', 'a label\'s key is missing before ","'],
    ['app,', "a label's key is missing"],
    ['=web', 'a label\'s key is missing before "="'],
    ['!', "a label's key is missing"],
    ['!app=web', '"=" is not expected after a requirement'],
    ['app=web db', '"db" is not expected after a requirement'],
    ['app web', '"web" is not an operator'],
    ['app>1', '">" is not an operator'],
    ['app in web', "the values lack their '('"],
    ['app in (web', "the values lack their ')'"],
    ['app in (web db)', "the values lack their ')'"],
    ['app=(web)', '"(" is not expected after a requirement'],
    ['-app=web', '"-app" is not a label\'s key'],
    ['a/b/c', '"a/b/c" is not a label\'s key'],
    ['/app', '"/app" is not a label\'s key'],
    ['Bad_Prefix/app', '"Bad_Prefix/app" is not a label\'s key'],
    [`${long}=a`, `${JSON.stringify(long)} is not a label's key`],
    [`a=${long}`, `${JSON.stringify(long)} is not a label's value`],
    ['app=we*b', '"we*b" is not a label\'s value'],
    ['app=web-', '"web-" is not a label\'s value'],
    // To Kubernetes, these characters are part of a word.
    ['app\f=web', '"app\\f" is not a label\'s key'],
    ['app=\u00a0web', '"\u00a0web" is not a label\'s value'],
    ['app\u2028in (web)', '"app\\u2028in" is not a label\'s key'],
  ]
  for (const [text, message] of cases) t.throws(() => parseSelector(text), { message }, quote(text))
})

const word = fc.constantFrom<string[]>('a', 'b', 'in', 'notin', 'x.y', 'k8s.io/a')
const value = fc.constantFrom<string[]>('', 'a', 'b', 'in', 'A-b_c.9')
const space = fc.constantFrom('', ' ', '\t ')
type Labelled = Readonly<Record<string, string>>
interface Case {
  readonly text: string
  readonly expected: (labels: Labelled) => boolean
}

const equality = fc
  .tuple(word, fc.constantFrom('=', '==', '!='), value, space)
  .map(([key, operator, one, s]): Case => ({
    text: `${s}${key}${s}${operator}${s}${one}`,
    expected: (labels) => (labels[key] === one) === (operator !== '!='),
  }))
const membership = fc
  .tuple(word, fc.constantFrom('in', 'notin'), fc.array(value, { minLength: 1, maxLength: 3 }), space)
  .map(([key, operator, values, s]): Case => ({
    text: `${key} ${operator}${s}(${s}${values.join(`${s},${s}`)}${s})`,
    expected: (labels) => {
      const label = labels[key]
      return (label !== undefined && values.includes(label)) === (operator === 'in')
    },
  }))
const existence = fc.tuple(word, fc.boolean(), space).map(([key, absent, s]): Case => ({
  text: `${absent ? `!${s}` : ''}${key}${s}`,
  expected: (labels) => (labels[key] === undefined) === absent,
}))
const selectors = fc.array(fc.oneof(equality, membership, existence), { minLength: 1, maxLength: 4 })
const labelSets = fc.dictionary(word, value, { noNullPrototype: true })

await t.test('a parsed selector matches the labels of its text', async (t) => {
  const property = fc.property(selectors, labelSets, (cases, labels) => {
    const text = cases.map((one) => one.text).join(',')
    return matches(text, labels) === cases.every(({ expected }) => expected(labels))
  })
  await holds(t, 'a selector selects what all of its requirements do', property)
  const anything = fc.string({
    unit: fc.constantFrom('a', 'b', '=', '!', ',', '(', ')', '<', ' ', '/', 'in', '-', '\t'),
    maxLength: 12,
  })
  const refused = fc.property(anything, (text) => {
    try {
      parseSelector(text)
    } catch (error) {
      return error instanceof SelectorError && error.suggestion !== ''
    }
    return true
  })
  await holds(t, 'whatever is written is a selector, or is refused with what to write', refused)
})
