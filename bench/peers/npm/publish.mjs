/**
 * Carries out the orders on standard input, as ../driver.ts says, each time through one peer's own code. The files of a directory are all
 * under way at once: written one after the other, they would cost more.
 */
import { mkdir, readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { writeFile as atomically } from 'atomically'
import writeFileAtomic from 'write-file-atomic'

const peers = {
  'write-file-atomic': (path, content) => writeFileAtomic(path, content, { mode: 0o600 }),
  atomically: (path, content) => atomically(path, content, { mode: 0o600 }),
}

async function publish({ peer, from, targets }) {
  const write = peers[peer]
  const names = await readdir(from)
  const files = await Promise.all(names.map(async (name) => [name, await readFile(join(from, name))]))
  for (const target of targets) {
    await mkdir(target, { recursive: true })
    await Promise.all(files.map(([name, content]) => write(join(target, name), content)))
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await publish(JSON.parse(line)).then(
    () => ({}),
    (error) => ({ error: String(error) }),
  )
  process.stdout.write(`${JSON.stringify(answer)}\n`)
}
