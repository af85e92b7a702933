/** The dashboard's queries and the alerts, evaluated by a real Prometheus that scrapes a real agent. */
import { execFile, execFileSync } from 'node:child_process'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { promisify } from 'node:util'
import t from 'tap'
import { Node } from '../cli/holdfast.js'
import { alerts, dashboard, panelQueries, rulesFile } from '../deploy/monitoring.js'
import { makeCertificate, makeKey } from '../directories/make-certificates.js'
import { project } from '../project.js'
import { endProcess, startProcess } from './guard.js'
import { freePort } from './ports.js'
import { until } from '../until.js'

/** Whether this machine has Prometheus: Debian's package has both programs that this test needs. */
function isInstalled(): boolean {
  try {
    execFileSync('prometheus', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const skip = isInstalled() ? false : 'it needs prometheus, of the Debian package of that name'

interface Answer {
  readonly status: string
  readonly error?: string
  readonly data: { readonly result: readonly { readonly value?: readonly [number, string] }[] }
}

/** As Grafana fills in what stands for the reader's choice. */
const filledIn = (expr: string) =>
  expr.replaceAll('$instance', '.*').replaceAll('$directory', '.*').replaceAll('$__rate_interval', '1m')

await t.test('each alert fires when it should, and no earlier', { skip }, async (t) => {
  const promtool = async (...args: string[]) => (await promisify(execFile)('promtool', args, { cwd: project })).stdout
  t.match(await promtool('check', 'rules', rulesFile), `SUCCESS: ${alerts.length} rules found`)
  t.match(await promtool('test', 'rules', 'test/deploy/alerts.yaml'), /SUCCESS/)
})

await t.test(
  'each query of the dashboard has an answer, and Prometheus can evaluate each alert',
  { skip },
  async (t) => {
    const node = new Node(t, [
      { path: './certs', contents: [{ secret: 'tls' }], afterPublish: [{ exec: ['/bin/true'] }] },
    ])
    const key = makeKey()
    node.put('Secret', 'tls', { 'tls.crt': makeCertificate(key), 'tls.key': key })
    const agent = node.agent()
    const target = new URL(await agent.address()).host
    const port = await freePort()
    const configuration = {
      global: { scrape_interval: '250ms', evaluation_interval: '250ms' },
      rule_files: [rulesFile],
      scrape_configs: [{ job_name: 'holdfast', static_configs: [{ targets: [target] }] }],
    }
    writeFileSync(node.path('prometheus.yaml'), JSON.stringify(configuration))
    const log = openSync(node.path('prometheus.log'), 'a')
    const prometheus = startProcess(
      'prometheus',
      [
        `--config.file=${node.path('prometheus.yaml')}`,
        `--storage.tsdb.path=${node.path('prometheus')}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { stdio: ['ignore', log, log] },
    )
    closeSync(log)
    t.teardown(() => endProcess(prometheus, 'SIGKILL'))
    const get = async (path: string): Promise<unknown> => {
      const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`, { headers: { connection: 'close' } })
      return response.json()
    }
    const query = async (expr: string) => (await get(`query?query=${encodeURIComponent(expr)}`)) as Answer
    await agent.logged('Published')
    // Rates need two samples.
    await until('Prometheus has scraped the publication twice', async () => {
      const published = 'holdfast_publishes_total{result="created"} == 1'
      const { data } = await query(`count_over_time((${published})[1m:250ms]) >= 2`)
      return data.result.length > 0
    })
    for (const { of, expr } of panelQueries) {
      // A figure that came later than the publication, a hook's end, may have been scraped once.
      const answer = await until(`${of}: ${expr} has an answer`, async () => {
        const answer = await query(filledIn(expr))
        return (answer.status !== 'success' || answer.data.result.length > 0) && answer
      })
      t.equal(answer.status, 'success', `${of}: ${answer.error ?? ''}`)
    }
    for (const { name, definition = '' } of dashboard.templating.list) {
      const [, metric, label] = /^label_values\((.*), (\w+)\)$/.exec(definition) ?? []
      if (metric === undefined) continue
      const found = (await get(`label/${label ?? ''}/values?match[]=${encodeURIComponent(filledIn(metric))}`)) as {
        data: readonly string[]
      }
      t.ok(found.data.length > 0, `${name}: ${definition}`)
    }
    const rules = await until('each rule was evaluated', async () => {
      const { data } = (await get('rules')) as {
        data: { groups: { rules: { name: string; health: string; lastError?: string }[] }[] }
      }
      const all = data.groups.flatMap((group) => group.rules)
      return all.every(({ health }) => health !== 'unknown') && all
    })
    t.same(
      rules.map(({ name, health, lastError }) => [name, health, lastError]),
      alerts.map(({ alert }) => [alert, 'ok', undefined]),
    )
  },
)
