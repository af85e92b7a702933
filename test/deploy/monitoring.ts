/** The queries of deploy/grafana and deploy/prometheus. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { deploy } from './manifests.js'

export const rulesFile = join(deploy, 'prometheus/holdfast.rules.yaml')

/** The configuration of kube-state-metrics for the nodes' reports. */
export const reportSeries = (
  parse(readFileSync(join(deploy, 'prometheus/kube-state-metrics.yaml'), 'utf8')) as {
    spec: { resources: { metricNamePrefix: string; metrics: readonly ReportSeries[] }[] }
  }
).spec.resources.flatMap(({ metricNamePrefix, metrics }) =>
  metrics.map((metric) => ({ ...metric, name: `${metricNamePrefix}_${metric.name}` })),
)

interface ReportSeries {
  readonly name: string
  readonly each: {
    readonly gauge?: { readonly path: readonly string[] }
    readonly info?: {
      readonly path: readonly string[]
      readonly labelsFromPath: Readonly<Record<string, readonly string[]>>
    }
  }
}

interface Panel {
  readonly title: string
  readonly type: string
  readonly description?: string
  readonly targets?: readonly { readonly expr: string }[]
}

export interface Dashboard {
  readonly panels: readonly Panel[]
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] }
}

export const dashboard = JSON.parse(readFileSync(join(deploy, 'grafana/holdfast.json'), 'utf8')) as Dashboard

interface Alert {
  readonly alert: string
  readonly expr: string
  readonly for?: string
  readonly annotations: Readonly<Record<string, string>>
}

export const alerts = (
  parse(readFileSync(rulesFile, 'utf8')) as { groups: { rules: readonly Alert[] }[] }
).groups.flatMap(({ rules }) => rules)

export interface Query {
  /** The panel or the alert. */
  readonly of: string
  readonly expr: string
}

export const panelQueries: readonly Query[] = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ of: title, expr })),
)

export const alertQueries: readonly Query[] = alerts.map(({ alert, expr }) => ({ of: alert, expr }))
