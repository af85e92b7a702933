import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { project } from '../project.js'
import { reasons } from '../../src/reasons.js'
import { read } from './pages.js'
import { reasonsPage } from './reasons-page.js'

await t.test('docs/reasons.md has each reason and each errno of the tables, with what to do', async (t) => {
  const page = reasonsPage()
  if (process.env['HOLDFAST_WRITE_PAGES'] === '1') writeFileSync(join(project, 'docs/reasons.md'), page)
  t.equal(read('docs/reasons.md'), page, 'npm run reasons')
  for (const reason of reasons)
    t.match(page, new RegExp(`^\\| \`${reason}\` +\\| \\w.*\\| .*\\w{3}.*\\| .*\\w{3}.* \\|$`, 'm'), reason)
  for (const errno of ['ENOSPC', 'EIO', 'EXDEV']) t.match(page, new RegExp(`^\\| \`${errno}\` `, 'm'))
})
