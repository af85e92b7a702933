/** The workflow of a release, and the script that makes its files; `.ci/package` runs the script whole. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { scratch } from '../durable/scratch.js'
import { project } from '../project.js'

const { version } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as { version: string }

function release(
  directory: string,
  args: readonly string[],
  env: object = {},
): { status: number | null; stderr: string } {
  const options = { encoding: 'utf8', env: { ...process.env, ...env } } as const
  return spawnSync(join(project, 'scripts/release.sh'), [directory, ...args], options)
}

await t.test(
  'release.sh refuses a tag that is not the version of all files, or has no section in the changelog',
  (t) => {
    const directory = scratch(t)
    t.match(release(directory, []), { status: 0, stderr: '' })
    t.match(release(directory, [], { TAG: 'v9.9.9' }), {
      status: 2,
      stderr: `the tag is v9.9.9, and package.json has ${version}`,
    })
    const hasSection = readFileSync(join(project, 'CHANGELOG.md'), 'utf8').includes(`\n## ${version}`)
    t.match(
      release(directory, [], { TAG: `v${version}` }),
      hasSection ? { status: 0 } : { status: 2, stderr: `CHANGELOG.md has no section "## ${version}"` },
    )
    t.match(release(directory, ['colour']), { status: 2, stderr: /usage: scripts\/release\.sh/ })
    t.end()
  },
)

interface Job {
  readonly permissions?: Readonly<Record<string, string>>
  readonly steps: readonly {
    readonly uses?: string
    readonly run?: string
    readonly with?: Readonly<Record<string, unknown>>
  }[]
}

await t.test('the workflow runs for tags of versions alone, and only what must write may write', (t) => {
  const workflow = parse(readFileSync(join(project, '.github/workflows/release.yml'), 'utf8')) as {
    on: { push: { tags: string[]; branches?: unknown } }
    permissions: object
    jobs: Record<string, Job>
  }
  t.same(workflow.on, { push: { tags: ['v[0-9]+.[0-9]+.[0-9]+'] } })
  t.same(workflow.permissions, { contents: 'read' })
  t.equal(workflow.jobs['files']?.permissions, undefined)
  const steps = Object.values(workflow.jobs).flatMap((job) => job.steps)
  const scripts = steps.flatMap(({ run = '' }) => [...run.matchAll(/\bscripts\/[\w.-]+/g)].map(([path]) => path))
  t.ok(scripts.length >= 2)
  for (const path of scripts) t.ok(existsSync(join(project, path)), path)
  // What comes from a tag's name reaches a shell as a variable, never as text.
  for (const { run = '' } of steps) t.notMatch(run, /\$\{\{ *github\.(?:ref|event|head)/)
  const image = steps.find(({ uses = '' }) => uses.startsWith('docker/build-push-action@'))
  t.match(image?.with, { platforms: 'linux/amd64,linux/arm64', provenance: 'mode=max', sbom: true })
  for (const [, argument = ''] of String(image?.with?.['build-args']).matchAll(/^(\w+)=/gm))
    t.match(readFileSync(join(project, 'Dockerfile'), 'utf8'), new RegExp(`^ARG ${argument}=`, 'm'), argument)
  t.end()
})
