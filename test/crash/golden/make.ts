/**
 * Makes the golden disks, or with `--answers` only asks the present build anew, of the disks that are there: `npm run golden -- [--seed N]
 * [--answers]`. Disks of a build that is gone can never be made again: a new set takes another file's name.
 */
import { parseArgs } from 'node:util'
import { enterPrivateMounts } from '../../disk/private-mounts.js'
import { asked } from './asked.js'
import { file, readGolden, writeGolden } from './disk.js'
import { Draw } from './draw.js'

const { values } = parseArgs({
  options: { seed: { type: 'string', default: '1' }, answers: { type: 'boolean', default: false } },
})
await enterPrivateMounts()
const extent = { each: 4, histories: 45, lives: 75, power: 6 }
const disks = values.answers ? readGolden() : await new Draw(Number(values.seed), extent).all()
if (!values.answers)
  writeGolden(
    file,
    disks.map((disk) => ({ ...disk, answers: [] })),
  )
const answers = await asked(file, disks)
const golden = disks.map((disk, index) => ({ ...disk, answers: answers[index] ?? [] }))
const bytes = writeGolden(file, golden)
console.log(`${golden.length} disks, ${answers.flat().length} answers, ${bytes} bytes`)
process.exit()
