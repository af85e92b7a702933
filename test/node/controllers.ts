/** The rest of a control plane, for tests with pods: the controller manager and the scheduler, which the API server is watched by. */
import { openSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { findProgram } from '../e2e/assets.js'
import { Cluster } from '../e2e/cluster.js'
import { endProcess, type Owner, startProcess } from '../e2e/guard.js'
import { until } from '../until.js'

/** A cluster with controllers, as a node's kubelet and its pods need it. It ends with the test. */
export async function startCluster(t: Owner): Promise<Cluster> {
  const cluster = await Cluster.start([
    '--authorization-mode=Node',
    '--enable-admission-plugins=NodeRestriction,ServiceAccount',
  ])
  t.teardown(() => cluster.stop())
  const directory = dirname(cluster.adminKubeconfig)
  // No second instance competes, and no program reads their metrics.
  const common = [`--kubeconfig=${cluster.adminKubeconfig}`, '--leader-elect=false', '--secure-port=0']
  const programs = [
    {
      name: 'kube-controller-manager',
      args: [
        ...[`--root-ca-file=${cluster.api.authority.certificate}`, '--node-monitor-grace-period=5m'],
        `--service-account-private-key-file=${join(directory, 'service-account.key')}`,
      ],
    },
    { name: 'kube-scheduler', args: [] },
  ] as const
  for (const { name, args } of programs) {
    const log = openSync(join(directory, `${name}.log`), 'a')
    const child = startProcess(await findProgram(name), [...common, ...args], {
      stdio: ['ignore', log, log],
    })
    t.teardown(() => endProcess(child, 'SIGKILL'))
  }
  const account = '/api/v1/namespaces/default/serviceaccounts/default'
  await until(
    'the default service account is there',
    async () => (await cluster.api.admin.call('GET', account)).status === 200,
    { within: 120_000 },
  )
  return cluster
}
