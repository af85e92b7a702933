import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { holdfast, scratch } from '../cli/holdfast.js'
import { deploy, documents, podFiles, podSpec } from './manifests.js'

/** What `holdfast rbac …` prints. */
async function printed(args: readonly string[]): Promise<object[]> {
  const { code, stdout, stderr } = await holdfast(['rbac', ...args, '--output', 'json'])
  if (code !== 0) throw new Error(`holdfast rbac ${args.join(' ')}: ${code}\n${stderr}`)
  return (JSON.parse(stdout) as { items: object[] }).items
}

await t.test('the agent’s rights are those that its configuration needs', async (t) => {
  const rights = documents('access/rbac.yaml')
  t.same(rights, await printed(['--config', join(deploy, 'base/holdfast.yaml')]))
  // The same Roles serve the static pod and the init container.
  for (const place of ['static-pod', 'init-container']) {
    t.same(rights, await printed(['--config', join(deploy, place, 'holdfast.yaml')]), place)
  }
})

await t.test('the component "report" has the rights that report: true takes, and no others', async (t) => {
  const [base] = documents('base/holdfast.yaml')
  const file = join(scratch(t), 'holdfast.yaml')
  writeFileSync(file, JSON.stringify({ ...base, report: true }))
  t.same(
    [...documents('access/rbac.yaml'), ...documents('components/report/rbac.yaml')],
    await printed(['--config', file]),
  )
})

await t.test('the group of the static pods’ users is bound to each of these Roles', async (t) => {
  const roles = documents('access/rbac.yaml').filter(({ kind }) => kind === 'Role')
  const bindings = documents('static-pod/user.yaml')
  t.same(
    bindings.map(({ metadata, roleRef }) => ({ namespace: metadata.namespace, roleRef })),
    roles.map(({ kind, metadata }) => ({
      namespace: metadata.namespace,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: metadata.name },
    })),
  )
  const group = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'holdfast:control-plane' }
  for (const { subjects } of bindings) t.same(subjects, [group], 'each node has a user of its own')
})

await t.test('the installer’s rights are those that its flags need', async (t) => {
  const [, ...flags] = podSpec(podFiles.installer).containers[0]?.args ?? []
  t.ok(flags.length > 0)
  const rights = await printed(['install', ...flags, '--node-name=node-1', '--service-account=holdfast-installer'])
  t.same(documents('installer/rbac.yaml'), rights)
})
