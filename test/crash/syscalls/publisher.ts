/**
 * A program that publishes to one target `ROUNDS` times, so many files each: `PUBLISHER TARGET ROUNDS FILES`. Prints what became
 * of each as JSON, with the round whose content the target then holds, and how many descriptors are open.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type * as Durable from '../../../src/durable/index.js'

const [target = '', rounds = '1', count = '2'] = process.argv.slice(2)
const built = pathToFileURL(join(process.env['HOLDFAST_BUILT'] ?? '', 'src/durable/index.js')).href
const { replaceDirectory } = (await import(built)) as typeof Durable

/** 0 where there is nothing; undefined for a mixture. Its reads run on no thread that strace watches. */
function held(): number | undefined {
  let names: string[]
  try {
    names = readdirSync(target)
  } catch {
    return 0
  }
  const found = names.map((name) => readFileSync(join(target, name), 'utf8').split(' of '))
  const rounds = new Set(found.map(([, round]) => Number(round)))
  const whole = names.length === Number(count) && found.every(([name], index) => name === names[index])
  return whole && rounds.size === 1 ? [...rounds][0] : undefined
}

const results: unknown[] = []
for (let round = 1; round <= Number(rounds); round++) {
  const names = Array.from({ length: Number(count) }, (_, index) => `file-${index}`)
  const files = Object.fromEntries(names.map((name) => [name, `${name} of ${round}`]))
  const result = await replaceDirectory(target, { files }).then(
    ({ outcome }) => ({ outcome }),
    (error: unknown) => {
      const { code, published, message } = error as { code: string; published: boolean; message: string }
      return { code, published, message }
    },
  )
  results.push({ ...result, held: held(), descriptors: readdirSync('/proc/self/fd').length })
}
process.stdout.write(JSON.stringify(results))
