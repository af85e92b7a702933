/** Text, numbers, booleans and quantities, as kubelet's decoder reads them. */
import { json, plain, refused, runs, withContainer, withMetadata, withSpec, type KubeletCase } from './kubelet-case.js'

export const texts: readonly KubeletCase[] = [
  refused(
    'a number as the value of a variable',
    withContainer('env: [{name: PORT, value: 8080}]'),
    /line 6, column 59: spec\.containers\[0\]\.env\[0\]\.value must be text, but is a number: quote it/,
  ),
  runs('the same in quotes', withContainer('env: [{name: PORT, value: "8080"}]')),
  refused(
    'numbers as arguments',
    withContainer('args: [-p, 80]'),
    /spec\.containers\[0\]\.args\[1\] must be text, but is a number: quote it/,
  ),
  refused(
    'a number as a label',
    withMetadata('labels: {revision: 7}'),
    /line 3, column 42: metadata\.labels\.revision must be text, but is a number: quote it/,
  ),
  refused(
    'an annotation that is switched on',
    withMetadata('annotations: {x: on}'),
    /metadata\.annotations\.x must be text, but is a boolean: quote it/,
  ),
  refused('a number as a name', plain.replace('web}', '123}'), /metadata\.name must be text/),
  runs('nothing as text', withContainer('env: [{name: PORT, value: ~}], workingDir: ')),
  runs('a date as text', withMetadata('annotations: {since: 2001-01-01}')),
  runs('hours and minutes', withMetadata('annotations: {at: 22:22}')),
  runs('text that YAML 1.2 has as a number', withMetadata('annotations: {a: 1e400, b: _1, c: 1__x}')),
  ...['1_000', '0b101', '0o7', '0x1F', '0644', '1e3', '.5', 'on', 'y', 'N', 'True', '9007199254740993'].map((scalar) =>
    refused(
      `${scalar} as text`,
      withMetadata(`annotations: {a: ${scalar}}`),
      /line 3, column 40: metadata\.annotations\.a must be text, but is a (?:number|boolean): quote it/,
    ),
  ),
]

export const numbers: readonly KubeletCase[] = [
  refused(
    'text as a port',
    withContainer('ports: [{containerPort: "80"}]'),
    /containerPort must be a whole number, .*but is other text: write it without quotes/,
  ),
  runs('1_000 as a port', withContainer('ports: [{containerPort: 1_000}]')),
  runs('0b101 as a port', withContainer('ports: [{containerPort: 0b101}]')),
  runs('1e3 as a port', withContainer('ports: [{containerPort: 1e3}]')),
  refused('1e400 as a port', withContainer('ports: [{containerPort: 1e400}]'), /containerPort must be a whole number/),
  refused('1.0 as a port, in JSON', json('"terminationGracePeriodSeconds":1.0'), /whole number/),
  refused('1e3 in JSON', json('"terminationGracePeriodSeconds":1e3'), /whole number/),
  runs('1e400 in JSON, in an unknown field', json('"unknown":1e400')),
  refused('half a second', withSpec('terminationGracePeriodSeconds: 0.5'), /whole number/),
  runs('the largest integer', withSpec('terminationGracePeriodSeconds: 9223372036854775807')),
  refused(
    'more than the largest integer',
    withSpec('terminationGracePeriodSeconds: 9223372036854775808'),
    /terminationGracePeriodSeconds must be a whole number of at most 64 bits/,
  ),
  refused('a user who is none', withSpec('securityContext: {runAsUser: root}'), /runAsUser must/),
  refused(
    'a flag as text',
    withSpec('hostNetwork: "true"'),
    /hostNetwork must be true or false, but is other text: write it without quotes/,
  ),
  refused('a flag as a number', withSpec('hostPID: 1'), /hostPID must be true or false/),
  runs('a flag of YAML 1.1', withSpec('hostNetwork: yes')),
  runs('quantities', withContainer('resources: {limits: {cpu: 1.5, memory: 1Gi}}')),
  runs('a quantity beyond integers', withContainer('resources: {limits: {memory: 9007199254740993}}')),
  refused(
    'a quantity that is none',
    withContainer('resources: {limits: {memory: 1 GiB}}'),
    /limits\.memory must be a quantity/,
  ),
  runs(
    'a probe of a named port and one of a number',
    withContainer(
      'livenessProbe: {httpGet: {port: web}}, readinessProbe: {httpGet: {port: 80}}, ports: [{name: web, containerPort: 80}]',
    ),
  ),
  refused(
    'a probe of no port',
    withContainer('livenessProbe: {httpGet: {port: 80.5}}'),
    /httpGet\.port must be a whole number or text/,
  ),
  refused('infinity, wherever it stands', withSpec('unknown: .inf'), /line 6, column 12: JSON, /),
]
