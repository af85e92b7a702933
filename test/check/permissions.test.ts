import t from 'tap'
import { checkPermissions } from '../../src/check/permissions.js'
import type { Permission } from '../../src/config/permissions.js'
import { json, type Reply } from '../kubernetes/connection/api-server.js'
import { start } from '../kubernetes/connection/connected.js'

const rule = { namespace: 'ns', group: '', purpose: 'objects' } as const
const permissions: Permission[] = [
  { ...rule, resource: 'secrets', names: ['a', 'b'], verbs: ['get', 'list'] },
  {
    ...rule,
    group: 'events.k8s.io',
    resource: 'events',
    names: undefined,
    verbs: ['create', 'patch'],
    purpose: 'events',
  },
  {
    ...rule,
    group: 'holdfast.dev',
    resource: 'nodepublications/status',
    names: ['n'],
    verbs: ['patch'],
    purpose: 'report',
  },
]

await t.test(
  'checkPermissions answers in the order of its questions, though the last answer comes first',
  async (t) => {
    const waiting: Reply[] = []
    const { api, running } = await start(t, {
      handler: (_, reply) => {
        waiting.push(reply)
        if (waiting.length < 7) return
        const status = { allowed: false }
        for (const each of waiting.reverse()) json(each, 201, { kind: 'SelfSubjectAccessReview', status })
      },
    })
    const results = await checkPermissions(api, {
      permissions,
      file: 'agent.yaml',
      timeout: 60_000,
      signal: new AbortController().signal,
    })
    t.same(
      results.map(({ status, found }) => [status, found.split(';')[0]]),
      [
        ['FAULT', 'get and list on secrets a in namespace ns: not allowed'],
        ['FAULT', 'get and list on secrets b in namespace ns: not allowed'],
        ['WARN', 'create and patch on events in namespace ns: not allowed'],
        ['WARN', 'patch on nodepublications/status n in namespace ns: not allowed'],
      ],
    )
    const asked = running.requests.map(
      ({ body }) => (JSON.parse(body) as { spec: { resourceAttributes: object } }).spec,
    )
    const attributes = { namespace: 'ns', group: 'holdfast.dev', resource: 'nodepublications', subresource: 'status' }
    t.strictSame(asked.at(-1), { resourceAttributes: { ...attributes, verb: 'patch', name: 'n' } })
  },
)
