/** What kubelet passes over in its manifest directory, and what it reads there although people may not think so. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Fills a manifest directory with what kubelet passes over; `text`: a pod, which it would run. */
export function fillWithOthers(directory: string, text: string): void {
  const at = (name: string) => join(directory, name)
  mkdirSync(at('directory.yaml'))
  writeFileSync(at('.hidden.yaml'), text)
  writeFileSync(at('large.yaml'), text)
  truncateSync(at('large.yaml'), 16 * 1024 * 1024)
  execFileSync('mkfifo', [at('fifo.yaml')])
  const links = { directory: 'directory.yaml', fifo: 'fifo.yaml', large: 'large.yaml', device: '/dev/null' }
  for (const [name, to] of Object.entries({ ...links, none: 'gone.yaml', loop: 'to-loop.yaml' }))
    symlinkSync(to, at(`to-${name}.yaml`))
}
