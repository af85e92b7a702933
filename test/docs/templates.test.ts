import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { project } from '../project.js'

const templates = join(project, '.github/ISSUE_TEMPLATE')

interface Form {
  readonly name: string
  readonly description: string
  readonly labels: readonly string[]
  readonly body: readonly {
    readonly type: string
    readonly id?: string
    readonly attributes: { readonly label?: string; readonly value?: string; readonly options?: readonly string[] }
  }[]
}

// GitHub leaves out an unreadable form without a word to the author of an issue.
for (const file of readdirSync(templates).filter((name) => name !== 'config.yml')) {
  await t.test(`${file} is a form as GitHub reads it, with a separate field for each question`, async (t) => {
    const form = parse(readFileSync(join(templates, file), 'utf8')) as Form
    t.match(form, { name: /\w/, description: /\w/, labels: [/\w/] })
    const fields = form.body.filter(({ type }) => type !== 'markdown')
    t.ok(fields.length > 2)
    for (const { type, id = '', attributes } of fields) {
      t.match(type, /^(input|textarea|dropdown|checkboxes)$/, id)
      t.match(id, /^[a-z-]+$/)
      t.match(attributes.label, /\w/, id)
      t.equal(type === 'dropdown', (attributes.options?.length ?? 0) > 1, id)
    }
    t.equal(new Set(fields.map(({ id }) => id)).size, fields.length, 'ids differ')
    t.equal(new Set(fields.map(({ attributes }) => attributes.label)).size, fields.length, 'labels differ')
  })
}

await t.test('the bug form asks for what tells defects of the disk apart, and for no secrets', async (t) => {
  const text = readFileSync(join(templates, 'bug.yml'), 'utf8')
  const { body } = parse(text) as Form
  const ids = body.map(({ id }) => id)
  for (const id of ['version', 'file-system', 'system', 'check', 'log']) t.ok(ids.includes(id), id)
  t.match(body[0], { type: 'markdown', attributes: { value: /Never paste a Secret/ } })
})
