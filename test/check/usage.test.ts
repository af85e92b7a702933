/** `check` on the command line. */
import { writeFileSync } from 'node:fs'
import t from 'tap'
import { holdfast } from '../cli/holdfast.js'
import { Scene } from './scene.js'

await t.test('check exits with 2 on wrong usage and broken configurations', async (t) => {
  const scene = new Scene(t)
  const none = scene.path('none.yaml')
  const config = ['--config', scene.configuration]
  const cases: [string[], RegExp][] = [
    [['check'], /--config FILE is missing/],
    [['check', '--config', none], /none\.yaml: cannot be read \(ENOENT\)/],
    [['check', '--conf', none], /unknown option '--conf'[\s\S]*Did you mean --config\?/],
    [['check', ...config, 'more'], /more is not a directory of /],
    [['check', ...config, '--timeout', '5'], /'5' is invalid[\s\S]*duration with units/],
    [['check', ...config, '-o', 'xml'], /Allowed choices are text, wide, json, yaml/],
    [['check', ...config, '--kubeconfig', none], /--kubeconfig .* has no effect/],
  ]
  for (const [args, message] of cases) {
    const { code, stdout, stderr } = await holdfast(args)
    t.equal(code, 2, `${args.join(' ')}: ${stderr}`)
    t.match(stderr, message)
    t.equal(stdout, '')
  }
})

await t.test('check names every fault of a broken configuration at once', async (t) => {
  const scene = new Scene(t)
  writeFileSync(
    scene.configuration,
    'apiVersion: holdfast.dev/v1alpha1\nkind: AgentConfiguration\nstateDirectroy: /x\nsource: { namespace: a, files: { path: ./objects } }\ndirectories:\n  - path: ./parent/certs\n    mode: 0755\n    contents: [{ secret: serving-cert, optinal: true }]\n',
  )
  const { code, stdout, stderr } = await holdfast(['check', '--config', scene.configuration, '-o', 'json'])
  t.equal(code, 2)
  t.match(JSON.parse(stdout), {
    error: {
      reason: 'ConfigurationInvalid',
      problems: [
        { line: 3, place: 'stateDirectroy' },
        { line: 7, place: 'directories[0].mode' },
        { line: 8, place: 'directories[0].contents[0].optinal' },
      ],
    },
  })
  t.equal(stderr.trim().split('\n').length, 3, 'a line of the log for each')
})

await t.test('check --help names what it examines and what it writes', async (t) => {
  const { code, stdout } = await holdfast(['check', '--help'])
  t.equal(code, 0)
  t.match(stdout, /Beside each target, holdfast creates two empty directories/)
  t.match(stdout, /Examples:\n {2}holdfast check --config/)
  t.match(stdout, /Exit codes: 0 fit [^]*4 not\s+fit/)
  t.match((await holdfast(['--help'])).stdout, /^ {2}check /m)
})

await t.test('check prints a table, advice and a verdict for people', async (t) => {
  const scene = new Scene(t)
  const { code, stdout, stderr } = await holdfast(['check', '--config', scene.configuration])
  t.equal(code, 0, stderr)
  t.match(stdout, /^SUBJECT +CHECK +STATUS +FOUND\n/)
  t.match(stdout, /exchange +OK +two directories beside the target/)
  t.match(stdout, /\n\nthis node is fit: 0 faults, \d+ warnings?\n$/)
  t.notMatch(stdout, /\u001b/, 'no colour where there is no terminal')
  t.equal(stderr, '')
})
