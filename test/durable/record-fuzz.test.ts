/**
 * Several records beside one target, drawn: as written, cut off, twice under other numbers, of other content, of another target, of a later
 * version, with fields that no program of ours writes. holdfast believes none wrongly, and survives each.
 */
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { readPublication, replaceDirectory } from '../../src/durable/index.js'
import { DurableWriteError } from '../../src/durable/errors.js'
import { holds } from '../property.js'
import { contents, scratch } from './scratch.js'

const parent = scratch(t)
const target = join(parent, 'certs')
const files = { a: '1', 'sub/b': '2' }
const recordName = /^\.holdfast-[0-9a-f]{16}\.\d+$/

function recordsIn(directory: string): string[] {
  return readdirSync(directory).filter((name) => recordName.test(name))
}

/** The one record after a publication: its prefix and its lines. */
function recordOf(directory: string): { prefix: string; text: string } {
  const [name = ''] = recordsIn(directory)
  return { prefix: name.replace(/\d+$/, ''), text: readFileSync(join(directory, name), 'utf8') }
}

async function recordOfOther(path: string, content: Record<string, string>): Promise<string> {
  const directory = scratch(t)
  await replaceDirectory(join(directory, path), { files: content })
  return recordOf(directory).text
}

const otherContent = await recordOfOther('certs', { a: 'other' })
const otherTarget = await recordOfOther('keys', files)
const otherPlace = await recordOfOther('certs', files)

/** With its checksum made right. */
function withBody(text: string, change: (body: Record<string, unknown>) => Record<string, unknown>): string {
  const [line = '', ...rest] = text.split('\n')
  const json = JSON.stringify(change(JSON.parse(line.slice(65)) as Record<string, unknown>))
  return [`${hash('sha256', json)} ${json}`, ...rest].join('\n')
}

/** Fields that decide whether a record vouches for durability here. */
const deciding = ['version', 'name', 'after', 'boot', 'place', 'requires', 'hold', 'kind']
const fields = [
  ...deciding,
  'before',
  'owned',
  'publishedAt',
  'objects',
  'hooks',
  'entries',
  'staging',
  'publisher',
  'retired',
  'attributes',
]

const forged = fc.record({ field: fc.constantFrom(...fields), value: fc.option(fc.jsonValue(), { nil: undefined }) })
const drawn = fc.oneof(
  fc.record({ kind: fc.constantFrom('intact', 'other content', 'other target', 'other place', 'newer', 'required') }),
  fc.record({ kind: fc.constantFrom('empty', 'a directory', 'a link') }),
  fc.record({ kind: fc.constant('cut'), at: fc.nat({ max: 2000 }) }),
  fc.record({ kind: fc.constant('forged'), forged }),
  fc.record({ kind: fc.constant('uncommitted') }),
)
type Drawn = { kind: string; at?: number; forged?: { field: string; value: unknown } }

function textOf({ kind, at = 0, forged }: Drawn, intact: string): string {
  switch (kind) {
    case 'other content':
      return otherContent
    case 'other target':
      return otherTarget
    case 'other place':
      return otherPlace
    case 'newer':
      return withBody(intact, (body) => ({ ...body, version: 2 }))
    case 'required':
      return withBody(intact, (body) => ({ ...body, requires: ['time-travel'] }))
    case 'cut':
      return intact.slice(0, at)
    case 'forged':
      return withBody(intact, (body) => ({ ...body, [forged?.field ?? '']: forged?.value }))
    case 'uncommitted':
      return `${intact.split('\n')[0] ?? ''}\n`
    case 'empty':
      return ''
    default:
      return intact
  }
}

/** Publishes, and puts these records where its own was. */
async function scene(records: readonly (readonly [number, Drawn])[]): Promise<void> {
  rmSync(parent, { recursive: true, force: true })
  mkdirSync(parent)
  await replaceDirectory(target, { files })
  const { prefix, text } = recordOf(parent)
  for (const name of recordsIn(parent)) rmSync(join(parent, name))
  for (const [sequence, record] of records) {
    const path = join(parent, `${prefix}${sequence}`)
    if (record.kind === 'a directory') mkdirSync(path)
    else if (record.kind === 'a link') symlinkSync('certs', path)
    else writeFileSync(path, textOf(record, text), { mode: 0o600 })
  }
}

/** The outcome, or a refusal with its reason. */
async function outcomeOf(task: Promise<{ outcome: string }>): Promise<string> {
  try {
    return (await task).outcome
  } catch (error) {
    assert.ok(error instanceof DurableWriteError, `fails with ${(error as Error).stack}`)
    assert.equal(error.published, false)
    return error.reason
  }
}

const several = fc.uniqueArray(fc.tuple(fc.integer({ min: 1, max: 12 }), drawn), {
  minLength: 1,
  maxLength: 4,
  selector: ([sequence]) => sequence,
})

/** Whether nothing but another publication may come of it. */
const proves = ({ kind, forged: change }: Drawn): boolean =>
  ['intact', 'cut'].includes(kind) || (kind === 'forged' && !['after', 'name', 'version'].includes(change?.field ?? ''))

await t.test('holdfast believes no record beyond its words', async (t) => {
  const property = fc.asyncProperty(several, async (records: [number, Drawn][]) => {
    await scene(records)
    const before = contents(target)
    try {
      await readPublication(target)
    } catch (error) {
      assert.ok(error instanceof DurableWriteError, `looking fails with ${(error as Error).stack}`)
    }
    const outcome = await outcomeOf(replaceDirectory(target, { files }))
    assert.deepEqual(contents(target), before)
    if (outcome === 'unchanged')
      assert.ok(
        records.some(([, record]) => proves(record)),
        'unchanged, by no record',
      )
  })
  await holds(t, 'the same content', property, { runs: 30 })
})

await t.test('no record is fatal: a publication succeeds, or refuses for a newer version or a hold', async (t) => {
  const property = fc.asyncProperty(several, async (records: [number, Drawn][]) => {
    await scene(records)
    const outcome = await outcomeOf(replaceDirectory(target, { files: { a: 'new' } }))
    if (outcome === 'replaced') {
      assert.deepEqual(contents(target), { a: 'new' })
      const read = await readPublication(target)
      assert.deepEqual([read?.durable, read?.differences], [true, []])
      assert.equal(await outcomeOf(replaceDirectory(target, { files: { a: 'new' } })), 'unchanged')
      return
    }
    assert.deepEqual(contents(target), { a: '1', 'sub/b': '2' })
    const isRefusal = records.some(
      ([, { kind, forged: change }]) =>
        kind === 'newer' ||
        kind === 'required' ||
        ['version', 'requires', 'hold', 'kind', 'publisher'].includes(change?.field ?? ''),
    )
    assert.ok(isRefusal, outcome)
  })
  await holds(t, 'other content', property, { runs: 30 })
})
