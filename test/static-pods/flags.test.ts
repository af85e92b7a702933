/** Flags as operators of library-go's commands give them. */
import { Command } from 'commander'
import t from 'tap'
import { installCommand } from '../../src/cli/commands/install.js'
import { monitorCommand } from '../../src/cli/commands/monitor.js'
import { pruneCommand } from '../../src/cli/commands/prune.js'
import { rbacCommand } from '../../src/cli/commands/rbac.js'
import { normalLine } from '../../src/cli/words/argv.js'
import { parserOf } from '../../src/cli/program.js'
import type { CommandData } from '../../src/cli/words/types.js'
import { settleVerbosity } from '../../src/cli/main.js'
import { testIo } from '../cli/in-process.js'

const { io } = testIo()

const parser = (data: CommandData) => parserOf(data, io)

/** Parses the flags, and runs nothing. */
function read(command: Command, args: readonly string[]): Record<string, unknown> {
  const words = normalLine([command.name(), ...args], new Command('holdfast').addCommand(command))
  const { operands, unknown } = command
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .parseOptions(words.slice(1))
  if (operands.length + unknown.length > 0) throw new Error(`not read: ${[...operands, ...unknown].join(' ')}`)
  return command.opts()
}

await t.test("install parses an installer pod's arguments as cluster-kube-apiserver-operator makes them", async (t) => {
  const options = read(parser(installCommand), [
    ...['-v=2', '--revision=6', '--namespace=openshift-kube-apiserver', '--pod=kube-apiserver-pod'],
    ...['--resource-dir=/etc/kubernetes/static-pod-resources', '--pod-manifest-dir=/etc/kubernetes/manifests'],
    ...['--configmaps=kube-apiserver-pod', '--configmaps=config', '--optional-configmaps=oauth-metadata'],
    ...['--secrets=etcd-client', '--optional-secrets=encryption-config,webhook-authenticator'],
    ...['--cert-dir=/etc/kubernetes/static-pod-resources/kube-apiserver-certs', '--cert-configmaps=ca-a,ca-b'],
    ...['--cert-configmaps', 'ca-c', '--cert-secrets=serving', '--optional-cert-secrets=user-serving-cert'],
    ...['--optional-cert-configmaps=none', '--timeout-duration=1m30s', '--kubeconfig=/k'],
    '--pod-manifests-lock-file=/var/lock/kube-apiserver-installer.lock',
  ])
  t.match(options, {
    revision: 6,
    configmaps: ['kube-apiserver-pod', 'config'],
    optionalSecrets: ['encryption-config', 'webhook-authenticator'],
    certConfigmaps: ['ca-a', 'ca-b', 'ca-c'],
    timeoutDuration: 90_000,
    podManifestsLockFile: '/var/lock/kube-apiserver-installer.lock',
  })
  t.equal(read(parser(installCommand), []).timeoutDuration, 120_000, 'two minutes, if nothing is said')
})

await t.test("prune and monitor parse the arguments of the operator's pods", async (t) => {
  const prune = read(parser(pruneCommand), [
    ...['-v=4', '--max-eligible-revision=7', '--protected-revisions=5,6', '--protected-revisions=7'],
    ...['--resource-dir=/r', '--cert-dir=kube-apiserver-certs', '--static-pod-name=kube-apiserver-pod'],
  ])
  t.match(prune, { maxEligibleRevision: 7, protectedRevisions: [5, 6, 7] })
  const monitor = read(parser(monitorCommand), [
    ...['-v=2', '--revision=7', '--fallback-timeout-duration=300s', '--resource-dir=/r', '--manifests-dir=/m'],
    ...['--target-name=kube-apiserver', '--installer-lock-file=/l', '--node-name=n', '--log-file-path=/f'],
  ])
  t.match(monitor, { revision: 7, fallbackTimeoutDuration: 300_000, logFilePath: '/f' })
  t.equal(read(parser(monitorCommand), []).fallbackTimeoutDuration, 33_000)
})

await t.test('-v counts verbosity as klog does, in each of its forms', async (t) => {
  for (const form of [['-v=4'], ['-v4'], ['-v', '4'], ['--v=4'], ['--v', '4']]) {
    t.equal(read(parser(installCommand), form).v, 4, form.join(' '))
  }
  for (const wrong of [['-v=x'], ['--v=-1'], ['--v=']])
    t.throws(() => read(parser(installCommand), wrong), wrong.join())
  const levelWith = (...args: string[]) => {
    const command = parser(installCommand)
    read(command, args)
    settleVerbosity(command)
    return command.opts().logLevel as unknown
  }
  t.same(
    [0, 2, 3, 4, 10].map((v) => levelWith(`--v=${v}`)),
    ['info', 'info', 'info', 'debug', 'debug'],
  )
  t.equal(levelWith('-v=10', '--log-level=error'), 'error', 'a level that was asked for by name stays')
  t.same(
    [levelWith('-v'), levelWith('-v', '--quiet'), levelWith('-q', '--log-level=silent')],
    ['debug', 'error', 'silent'],
  )
})

await t.test('lists drop empty parts, and refuse unfit names', async (t) => {
  const lists = read(parser(installCommand), ['--secrets=a,,b,', '--secrets=', '--configmaps= c , d '])
  t.match(lists, { secrets: ['a', 'b'], configmaps: ['c', 'd'] })
  for (const wrong of ['../x', 'A', 'a/b', 'a b', '-a', '.', 'x'.repeat(254)]) {
    t.throws(() => read(parser(installCommand), [`--secrets=a,${wrong}`]), /not a name that Kubernetes allows/, wrong)
  }
  for (const wrong of ['5,x', '1.5', '-1', '05'])
    t.throws(() => read(parser(pruneCommand), [`--protected-revisions=${wrong}`]), /whole number/, wrong)
})

/** Every flag that klog registers, and library-go's commands take. */
const klogFlags = [
  ...['--add-dir-header', '--alsologtostderr=false', '--log-backtrace-at=:0', '--log-dir=/x', '--log-file=/y'],
  ...['--log-file-max-size=1800', '--logtostderr=true', '--one-output', '--skip-headers', '--skip-log-headers=0'],
  ...['--stderrthreshold=2', '-v=2', '--vmodule=a=1,b=2'],
]

await t.test("static-pod commands accept klog's flags, and leave them out of the help", async (t) => {
  const rbacInstall = parser(rbacCommand).commands.find((command) => command.name() === 'install')
  for (const made of [parser(installCommand), parser(monitorCommand), parser(pruneCommand), rbacInstall]) {
    if (made === undefined) throw new Error('rbac has no command install')
    read(made, klogFlags)
    t.notMatch(made.helpInformation(), /vmodule|logtostderr|skip-headers/)
  }
})

await t.test("--logtostderr does not take a manifest's name for its value", async (t) => {
  t.throws(() => read(parser(installCommand), ['--logtostderr', 'web.yaml']), /true or false, with "="/)
})
