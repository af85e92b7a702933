/** Images made without a registry: one layer with one program and its libraries, in the layout that `docker save` writes. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { workingDirectory } from '../e2e/guard.js'

const run = promisify(execFile)

/** Writes an image that has this program on its PATH, and runs it with these arguments unless a pod has others; returns the archive's path. */
export async function archiveProgram(program: string, reference: string, args: readonly string[]): Promise<string> {
  const directory = mkdtempSync(join(workingDirectory, 'image-'))
  const root = join(directory, 'root')
  const place = `/usr/local/bin/${basename(program)}`
  for (const [from, to] of [[program, place], ...(await libraries(program)).map((path) => [path, path])] as const) {
    mkdirSync(dirname(join(root, to)), { recursive: true })
    copyFileSync(from, join(root, to))
  }
  await tar(join(directory, 'layer.tar'), root)
  const layer = createHash('sha256')
    .update(readFileSync(join(directory, 'layer.tar')))
    .digest('hex')
  const content = join(directory, 'content')
  mkdirSync(content)
  copyFileSync(join(directory, 'layer.tar'), join(content, 'layer.tar'))
  const configuration = {
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: { Entrypoint: [place], Cmd: args },
    rootfs: { type: 'layers', diff_ids: [`sha256:${layer}`] },
  }
  writeFileSync(join(content, 'config.json'), JSON.stringify(configuration))
  const manifest = [{ Config: 'config.json', RepoTags: [reference], Layers: ['layer.tar'] }]
  writeFileSync(join(content, 'manifest.json'), JSON.stringify(manifest))
  const archive = join(directory, 'image.tar')
  await tar(archive, content)
  return archive
}

/** Go may have linked the program with the C library. */
async function libraries(program: string): Promise<string[]> {
  const { stdout } = await run('ldd', [program]).catch(() => ({ stdout: '' }))
  return [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path = '']) => path)
}

async function tar(archive: string, directory: string): Promise<void> {
  await run('tar', ['--create', '--numeric-owner', '--file', archive, '--directory', directory, '.'])
}
