/** Writes the table of differences into the page: `npm run compile && node dist/test/library-go/write-table.js`. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { project } from '../project.js'
import { page, withTable } from './table.js'

const path = join(project, page)
writeFileSync(path, withTable(readFileSync(path, 'utf8')))
