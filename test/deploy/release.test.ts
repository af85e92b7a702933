/** The workflow of a release, and the script that makes its files; `.ci/package` runs the script whole. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { scratch, scratchWith } from '../durable/scratch.js'
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
  async (t) => {
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
  },
)

/** Runs a step of the workflow with a program of the runner's that answers this; GitHub runs them with bash -eo pipefail. */
function runStep(t: Test, script: string, program: string, answer: string): { status: number | null; output: string } {
  const [directory, output] = scratchWith(t, 'output')
  writeFileSync(join(directory, program), `#!/bin/sh\necho '${answer}'\n`, { mode: 0o755 })
  const env = {
    PATH: `${directory}:${process.env['PATH'] ?? ''}`,
    GITHUB_OUTPUT: output,
    GITHUB_REPOSITORY_OWNER: 'Owner',
    REGISTRY: 'registry.example',
  }
  copyFileSync(join(project, 'Dockerfile'), join(directory, 'Dockerfile'))
  const { status } = spawnSync('bash', ['-eo', 'pipefail', '-c', script], { cwd: directory, env })
  return { status, output: existsSync(output) ? readFileSync(output, 'utf8') : '' }
}

interface Job {
  readonly permissions?: Readonly<Record<string, string>>
  readonly steps: readonly {
    readonly id?: string
    readonly uses?: string
    readonly run?: string
    readonly with?: Readonly<Record<string, unknown>>
  }[]
}

const workflow = parse(readFileSync(join(project, '.github/workflows/release.yml'), 'utf8')) as {
  readonly on: { readonly push: { readonly tags: readonly string[] } }
  readonly permissions: object
  readonly jobs: Readonly<Record<string, Job>>
}

await t.test('the workflow runs for tags of versions alone, and only what must write may write', async (t) => {
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
})

await t.test(
  'each action of a workflow is named by the digest of its commit, with its version for people',
  async (t) => {
    const workflows = join(project, '.github/workflows')
    const text = readdirSync(workflows).map((name) => readFileSync(join(workflows, name), 'utf8'))
    const uses = [...text.join('').matchAll(/^ *(?:- *)?uses: *(.*)$/gm)].map(([, action]) => action)
    t.ok(uses.length > 0)
    // Its owner can move a tag to another commit, which would then run with the rights to sign.
    for (const action of uses) t.match(action, /^[\w-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
  },
)

await t.test('the package says where it comes from, so that npm leads to its pages', async (t) => {
  const directory = scratch(t)
  copyFileSync(join(project, 'package.json'), join(directory, 'package.json'))
  const steps = workflow.jobs['files']?.steps ?? []
  const at = steps.findIndex(({ id }) => id === 'origin')
  t.ok(at >= 0 && at < steps.findIndex(({ run }) => run?.startsWith('scripts/release.sh')), 'before it is packed')
  const { status, stderr } = spawnSync('bash', ['-eo', 'pipefail', '-c', steps[at]?.run ?? 'exit 9'], {
    cwd: directory,
    encoding: 'utf8',
    env: { ...process.env, GITHUB_SERVER_URL: 'https://git.example', GITHUB_REPOSITORY: 'Owner/holdfast' },
  })
  t.equal(status, 0, stderr)
  const read = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
  t.strictSame(read(join(directory, 'package.json')), {
    ...read(join(project, 'package.json')),
    repository: { type: 'git', url: 'git+https://git.example/Owner/holdfast.git' },
    homepage: 'https://git.example/Owner/holdfast#readme',
    bugs: { url: 'https://git.example/Owner/holdfast/issues' },
  })
})

await t.test('the workflow pins the base by its digest, and attests image, files and chart by theirs', async (t) => {
  const steps = Object.values(workflow.jobs).flatMap((job) => job.steps)
  const script = (id: string): string => steps.find((step) => step.id === id)?.run ?? ''
  const digest = `sha256:${'0a'.repeat(32)}`
  t.same(runStep(t, script('base'), 'docker', digest), { status: 0, output: `digest=${digest}\n` })
  const chart = runStep(t, script('chart'), 'helm', `Pushed: x\nDigest: ${digest}`)
  t.same(chart, { status: 0, output: `name=registry.example/owner/charts/holdfast\ndigest=${digest}\n` })
  for (const [id, program] of Object.entries({ base: 'docker', chart: 'helm' }))
    t.match(runStep(t, script(id), program, 'Digest: sha256:12'), { status: 1, output: '' }, `${id} without a digest`)
  const image = steps.find(({ uses = '' }) => uses.startsWith('docker/build-push-action@'))
  t.match(image?.with?.['build-args'], 'BASE_DIGEST=${{ steps.base.outputs.digest }}')
  const attested = steps.filter(({ uses = '' }) => uses.startsWith('actions/attest-')).map((step) => step.with)
  for (const subject of ['steps.build.outputs.digest', 'steps.chart.outputs.digest'])
    t.ok(
      attested.some((one) => one?.['subject-digest'] === `\${{ ${subject} }}`),
      subject,
    )
  t.ok(attested.some((one) => one?.['subject-path'] === 'release/*'))
})
